/* Puts the page together. What fails in one section leaves the others alone. */

function remembered() {
	try {
		return localStorage.getItem('ringside-theme') || '';
	} catch {
		return ''; /* not every browser lets a file remember */
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
			/* then it is for this time only */
		}
	});
	matchMedia('(prefers-color-scheme: dark)').addEventListener('change', coloursChanged);
	/* Paper is light, whatever the screen is. */
	addEventListener('beforeprint', () => setTheme('light'));
	addEventListener('afterprint', () => setTheme(select.value));
}

/* Marks where the reader is, in the bar at the top. */
function followSections() {
	const links = new Map([...document.querySelectorAll('nav a')].map((link) => [link.hash.slice(1), link]));
	/* What crosses a line at a third of the screen is what is read; between two, it was the last one. */
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
		byId(id).append(el('p', { class: 'dim' }, `This part could not be drawn: ${error.message}`));
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
