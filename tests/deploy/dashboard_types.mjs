// Checks the dashboards against Grafana's schema: node dashboard_types.mjs DIRECTORY DASHBOARD.json...
//
// Writes each as a typed TypeScript literal, so that a missing, misspelled or wrongly typed field is a compiler error. Options and field
// settings of a panel are checked against the types of that panel. Prints the errors.
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';
import { panelsOf } from './promql.mjs';

const modules = resolve(fileURLToPath(import.meta.url), '../../../npm/node_modules');
const [directory, ...files] = process.argv.slice(2);
const schema = '@grafana/schema/dist/esm/raw/composable';
const kinds = { timeseries: 'TimeSeries', stat: 'Stat', bargauge: 'BarGauge', table: 'Table', heatmap: 'Heatmap' };
const withFields = ['timeseries', 'table', 'heatmap'];

// JSON has no enums: their values are strings.
let source = `
import type { DataSourceRef } from '@grafana/schema';
import type { Dashboard, Panel, RowPanel, VariableModel, AnnotationQuery } from '@grafana/schema/dist/types/veneer/dashboard.types';
type Text<T> = T extends string ? \`\${T}\` : T extends (infer E)[] ? Text<E>[] : T extends object ? { [K in keyof T]: Text<T[K]> } : T;
type Query = { refId: string; expr: string; datasource: DataSourceRef; legendFormat: string; editorMode: 'code' | 'builder';
	range: boolean; instant: boolean; format: 'time_series' | 'table' | 'heatmap' };
type Alerts = Text<AnnotationQuery> & { titleFormat?: string; textFormat?: string; target?: { refId: string; expr: string; interval?: string } };
`;
for (const [type, name] of Object.entries(kinds)) {
	const names = `Options as ${name}Options${withFields.includes(type) ? `, FieldConfig as ${name}Fields` : ''}`;
	source += `import type { ${names} } from '${schema}/${type}/panelcfg/x/${name}PanelCfg_types.gen';\n`;
}

let count = 0;
function literal(type, value, where) {
	source += `// ${where}\nexport const v${++count}: ${type} = ${JSON.stringify(value)};\n`;
}

for (const file of files) {
	const { panels, templating, annotations, ...rest } = JSON.parse(readFileSync(file, 'utf8'));
	literal("Text<Omit<Dashboard, 'panels' | 'templating' | 'annotations'>>", rest, file);
	templating.list.forEach((variable) => literal('Text<VariableModel>', variable, `${file}: ${variable.name}`));
	annotations.list.forEach((annotation) => literal('Alerts', annotation, `${file}: ${annotation.name}`));
	for (const panel of panelsOf({ panels })) {
		const where = `${file}: ${panel.title}`;
		if (panel.type === 'row') {
			literal('Text<RowPanel>', { ...panel, panels: [] }, where);
			continue;
		}
		const { options, targets, ...frame } = panel;
		const kind = kinds[panel.type];
		literal("Text<Omit<Panel, 'options' | 'targets'>>", frame, where);
		literal(`Text<${kind}Options>`, options, where);
		literal('Query[]', targets, where);
		if (withFields.includes(panel.type))
			literal(`Text<${kind}Fields>`, panel.fieldConfig.defaults.custom, where);
	}
}
writeFileSync(join(directory, 'check.ts'), source);
symlinkSync(modules, join(directory, 'node_modules'));
writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({
	files: ['check.ts'],
	compilerOptions: {
		noEmit: true, strict: true, skipLibCheck: true, target: 'es2022', lib: ['es2022'], module: 'esnext', moduleResolution: 'bundler', types: [],
		paths: { '@grafana/schema/dist/types/*': ['./node_modules/@grafana/schema/dist/types/*'] },
	},
}));
try {
	execFileSync(process.execPath, [join(modules, 'typescript/bin/tsc'), '-p', directory], { encoding: 'utf8' });
} catch (error) {
	const lines = source.split('\n');
	for (const line of error.stdout.split('\n').filter(Boolean)) {
		const number = Number(/\((\d+),/.exec(line)?.[1]);
		console.log(number ? `${lines[number - 2]}: ${line.replace(/^[^:]*: /, '')}` : line);
	}
	process.exit(1);
}
console.log(`${count} parts of ${files.length} dashboards match Grafana's types`);
