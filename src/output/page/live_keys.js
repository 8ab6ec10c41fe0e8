/* Keyboard, theme, help dialog. */

function remembered(name) {
	try {
		return localStorage.getItem(name) || '';
	} catch {
		return ''; /* storage may be disabled */
	}
}

function remember(name, value) {
	try {
		localStorage.setItem(name, value);
	} catch {
		/* not remembered then */
	}
}

function setTheme(theme) {
	if (theme === 'light' || theme === 'dark')
		document.documentElement.dataset.theme = theme;
	else
		delete document.documentElement.dataset.theme;
	byId('theme').value = theme;
	remember('ringside-theme', theme);
	coloursChanged();
}

byId('theme').addEventListener('change', () => setTheme(byId('theme').value));
matchMedia('(prefers-color-scheme: dark)').addEventListener('change', coloursChanged);

function goTo(id) {
	const section = byId(id);
	const target = section.querySelector('.notice button:not([hidden])') || section;

	section.scrollIntoView({ block: 'start' });
	if (target === section)
		section.tabIndex = -1;
	target.focus({ preventScroll: true });
}

const keysDialog = byId('keys');
const letterKeys = {
	'?': () => keysDialog.showModal(),
	'/': () => byId('find').focus(),
	j: () => step(1, true),
	k: () => step(-1, true),
	n: () => goTo('notices'),
	c: () => goTo('communicators'),
	f: () => goTo('flights'),
	l: () => goTo('processes'),
	p: () => setPaused(!asking.isPaused),
	t: () => {
		const themes = ['', 'light', 'dark'];

		setTheme(themes[(themes.indexOf(byId('theme').value) + 1) % 3]);
		speak(`Colours: ${byId('theme').selectedOptions[0].textContent}`);
	},
};

addEventListener('keydown', (event) => {
	const isTyping = event.target.closest('input, select, textarea');

	if (event.key === 'Escape' && event.target.id === 'find') {
		byId('find').value = '';
		byId('find').dispatchEvent(new Event('input'));
		event.target.blur();
	}
	if (isTyping || keysDialog.open || event.ctrlKey || event.metaKey || event.altKey || !letterKeys[event.key])
		return;
	/* Letter shortcuts can be disabled for speech input or accidental typing; the question mark always works. */
	if (event.key !== '?' && (!byId('letters').checked || !store.now))
		return;
	event.preventDefault();
	letterKeys[event.key]();
});

byId('show-keys').addEventListener('click', () => keysDialog.showModal());
byId('close-keys').addEventListener('click', () => keysDialog.close());
byId('letters').checked = remembered('ringside-letters') !== 'off';
byId('letters').addEventListener('change', () => remember('ringside-letters', byId('letters').checked ? 'on' : 'off'));
