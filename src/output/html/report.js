/* Builds the page. A failure in one section does not affect the others. */

function remembered() {
	try {
		return localStorage.getItem('ringside-theme') || '';
	} catch {
		return ''; /* some browsers have no storage for files */
	}
}

function setTheme(theme) {
	if (theme === 'light' || theme === 'dark')
		document.documentElement.dataset.theme = theme;
	else
		delete document.documentElement.dataset.theme;
	coloursChanged();
}

function showTheme() {
	const select = byId('theme');

	select.value = remembered();
	setTheme(select.value);
	select.addEventListener('change', () => {
		setTheme(select.value);
		try {
			localStorage.setItem('ringside-theme', select.value);
		} catch {
			/* not remembered */
		}
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', coloursChanged);
	/* Print on white. */
	addEventListener('beforeprint', () => setTheme('light'));
	addEventListener('afterprint', () => setTheme(select.value));
}

/* Highlights the current section in the navigation. */
function followSections() {
	const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
	/* The current section is the last one that crossed a line at a third of the screen. */
	const observer = new IntersectionObserver((entries) => {
		const entered = entries.find((entry) => entry.isIntersecting);

		if (!entered)
			return;
		links.forEach((link) => link.removeAttribute('aria-current'));
		links.get(entered.target.id).setAttribute('aria-current', 'location');
	}, { rootMargin: '-33% 0px -66% 0px' });

	links.forEach((link, id) => observer.observe(byId(id)));
}

function show(id, make) {
	try {
		make();
	} catch (error) {
		byId(id).append(el('p', { class: 'dim' }, `This section failed: ${error.message}`));
		console.error(error);
	}
}

readColours();
showTheme();
show('answer', showAnswer);
show('time', showTime);
show('waiting', showWaiting);
show('sizes', showSizes);
show('durations', showDurations);
show('iterations', showIterations);
show('tables', showTables);
followSections();
document.documentElement.dataset.ready = 'true';
