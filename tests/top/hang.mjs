import { done, expect, Session } from './terminal.mjs';

const [ringside] = process.argv.slice(2);
const plain = new Session(80, 24, [ringside, 'top', '--interval', '200ms']);
const small = new Session(40, 10, [ringside, 'top', '--interval', '200ms']);
const tiny = new Session(20, 5, [ringside, 'top', '--interval', '200ms']);

await plain.shows('a rank is behind before anything hangs', /^! rank 2 .*behind|^! rank 2 /m);
await plain.shows('its row says so', /^ ! +2 .* behind$/m);
await plain.shows('others wait for it', /AllReduce \d+ .*rank 2, which has not issued it/);
await plain.until('then it is a hang, at the top', () =>
	/^! rank 2 has not called AllReduce #\d+ of world; 3 ranks wait +for [\d.ms]+s$/.test(plain.lines()[1]));
await plain.shows('with what to type next', /ringside ps @\d+/);
expect('the notice stands out, also without colours', plain.cell(1, 0).isBold() !== 0);
expect('and with them', !plain.cell(1, 0).isBgDefault());
plain.press('\x1b[Z');
await plain.shows('a notice can be chosen', /^> rank 2 has not called/m);
plain.press('\t\t\t');
await plain.shows('so can an operation: what its kernel does', /^> .*\n    kernel: \d+ of \d+ channels/m);
await small.shows('40x10 has the notice, too', /^! rank 2 has not called/m);
await tiny.shows('and 20x5', /^! rank 2 has not ca~$/m);
tiny.press('\t');
await tiny.until('its panes still have rows', () => /RANK OLDEST STATE/.test(tiny.text()) && /^> +0 /m.test(tiny.text()));
for (const session of [plain, small, tiny]) {
	session.press('q');
	await session.ended('q ends it', 0);
	expect('the terminal is as it was', session.isRestored());
}
done();
