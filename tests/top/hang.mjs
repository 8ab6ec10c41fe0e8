import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);
const plain = new Session(80, 24, [ringside, 'top', '--interval', '200ms']);
const small = new Session(40, 10, [ringside, 'top', '--interval', '200ms']);
const tiny = new Session(20, 5, [ringside, 'top', '--interval', '200ms']);

await plain.shows('a rank that has not arrived is reported before it is a hang', /^! rank 2 /m);
await plain.shows('its row shows the state', /^ ! +2 .* not arrived$/m);
await plain.shows('others wait for it', /AllReduce #\d+ .*rank 2, which has not called it/);
await plain.until('then it is reported as a hang, at the top', () =>
	/^! rank 2 has not called AllReduce #\d+ of world; 3 ranks wait +for [\d.ms]+s$/.test(plain.lines()[2]));
await plain.shows('above it is what was judged', /\nHangs: judged, 1 found. Speed: not judged: the job hangs\n/);
await plain.shows('with a command to run', /ringside ps @\d+/);
expect('the notice is highlighted without colours', plain.cell(2, 0).isBold() !== 0);
expect('and with colours', !plain.cell(2, 0).isBgDefault());
plain.press('\x1b[Z');
await plain.shows('a notice can be selected', /^> rank 2 has not called/m);
plain.press('\t\t\t');
await plain.shows('so can an operation, with the progress of its kernel', /^> .*\n    kernel: \d+ of \d+ channels/m);
await small.shows('40x10 shows the notice', /^! rank 2 has not called/m);
await tiny.shows('so does 20x5', /^! rank 2 has not ca~$/m);
tiny.press('\t');
await tiny.until('its panes still have rows', () => /RANK OLDEST STATE/.test(tiny.text()) && /^> +0 /m.test(tiny.text()));
for (const session of [plain, small, tiny]) {
	session.press('q');
	await session.ended('q quits', 0);
	expect('the terminal is restored', session.isRestored());
}
done();
