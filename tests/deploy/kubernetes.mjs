// Renders the kustomize folders of deploy/kubernetes, validates every object against the schemas of its API, and checks what
// schemas do not: names, selectors and ports that refer to each other.
//
//	kubernetes.mjs SCRATCH|- DIRECTORY[=rendered.yaml]...
//
// With a scratch directory their types are checked, too. What kubectl made of a folder must be the same. Prints the number of objects of each
// folder, or what is wrong with it.
import { execFileSync } from 'node:child_process';
import { readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { basename, dirname, join, normalize } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isDeepStrictEqual } from 'node:util';

const root = join(dirname(fileURLToPath(import.meta.url)), '..', '..');
const require = createRequire(join(root, 'npm', 'package.json'));
const YAML = require('yaml');
const failed = new Set();
let directory;
const fail = (text, of = directory) => {
	console.log(`${of}: ${text}`);
	failed.add(of);
};

// ---- kustomize, as far as we use it ----------------------------------------------------------------------------------------

const KNOWN = ['apiVersion', 'kind', 'namespace', 'resources', 'generatorOptions', 'configMapGenerator', 'patches', 'components'];
const CLUSTER_WIDE = ['Namespace'];

function documents(path) {
	return YAML.parseAllDocuments(readFileSync(path, 'utf8'), { uniqueKeys: true }).map((document) => {
		if (document.errors.length > 0)
			throw new Error(`${path}: ${document.errors[0].message}`);
		return document.toJS();
	}).filter((object) => object !== null);
}

// JSON patch: add, replace, remove.
function patch(object, { op, path, value }) {
	const keys = path.slice(1).split('/').map((key) => key.replaceAll('~1', '/').replaceAll('~0', '~'));
	const last = keys.pop();
	const parent = keys.reduce((at, key) => at?.[key], object);
	if (parent === undefined || (op !== 'add' && !(last in parent)))
		throw new Error(`patch: no ${path}`);
	if (Array.isArray(parent) && last === '-')
		parent.push(value);
	else if (op === 'remove')
		delete parent[last];
	else
		parent[last] = value;
}

function apply(patches, objects, directory) {
	for (const { target, patch: text } of patches) {
		const found = objects.filter(({ kind, metadata }) => kind === target.kind && metadata.name === target.name);
		if (found.length !== 1)
			throw new Error(`${directory}: ${found.length} objects match a patch`);
		for (const step of YAML.parse(text))
			patch(found[0], step);
	}
}

function render(directory) {
	const [kustomization] = documents(join(directory, 'kustomization.yaml'));
	const unknown = Object.keys(kustomization).filter((key) => !KNOWN.includes(key));
	if (unknown.length > 0)
		throw new Error(`${directory}: this test does not know ${unknown}`);
	const objects = [];
	for (const resource of kustomization.resources ?? []) {
		const path = normalize(join(directory, resource));
		objects.push(...(/\.ya?ml$/.test(resource) ? documents(path) : render(path)));
	}
	for (const { name, files } of kustomization.configMapGenerator ?? []) {
		const data = {};
		for (const file of files) {
			if (file.includes('..'))
				throw new Error(`${directory}: kustomize loads no file outside of its folder: ${file}`);
			data[basename(file)] = readFileSync(join(directory, file), 'utf8');
		}
		objects.push({ apiVersion: 'v1', kind: 'ConfigMap', metadata: { name, labels: { ...kustomization.generatorOptions.labels } }, data });
	}
	for (const component of kustomization.components ?? []) {
		const [{ kind, patches }] = documents(join(directory, component, 'kustomization.yaml'));
		if (kind !== 'Component')
			throw new Error(`${component} is no component`);
		apply(patches, objects, component);
	}
	apply(kustomization.patches ?? [], objects, directory);
	for (const object of objects)
		if (kustomization.namespace && !CLUSTER_WIDE.includes(object.kind))
			object.metadata.namespace = kustomization.namespace;
	return objects;
}

// ---- schemas ---------------------------------------------------------------------------------------------------------------

const moduleOf = ({ apiVersion, kind }) => (apiVersion.startsWith('monitoring.coreos.com/')
	? `@kubernetes-models/prometheus-operator/${apiVersion}/${kind}` : `kubernetes-models/${apiVersion}/${kind}`);

function validate(object, name) {
	const Model = require(moduleOf(object))[object.kind];
	try {
		new Model(object).validate();
	} catch (error) {
		fail(`${name}: ${error.message}`);
	}
}

// The schemas allow fields that they do not know. The types do not: as a typed literal, a misspelled field is a compiler error.
function checkTypes(scratch, folders) {
	const kinds = new Map([...folders.values()].flat().map((object) => [object.kind, moduleOf(object)]));
	const places = [];
	let source = [...kinds].map(([kind, name]) => `import type { I${kind} } from '${name}';\n`).join('');
	for (const [folder, objects] of folders)
		for (const { data, ...rest } of objects) {
			source += `export const v${places.length}: I${rest.kind} = ${JSON.stringify(rest)};\n`;
			places.push([folder, `${rest.kind} ${rest.metadata.name}`]);
		}
	writeFileSync(join(scratch, 'check.ts'), source);
	symlinkSync(join(root, 'npm', 'node_modules'), join(scratch, 'node_modules'));
	writeFileSync(join(scratch, 'tsconfig.json'), JSON.stringify({
		files: ['check.ts'],
		compilerOptions: { noEmit: true, strict: true, skipLibCheck: true, target: 'es2022', lib: ['es2022'], module: 'esnext', moduleResolution: 'bundler', types: [] },
	}));
	try {
		execFileSync(process.execPath, [join(root, 'npm/node_modules/typescript/bin/tsc'), '-p', scratch], { encoding: 'utf8' });
	} catch (error) {
		for (const line of error.stdout.split('\n').filter(Boolean)) {
			const [folder, name] = places[Number(/\((\d+),/.exec(line)?.[1]) - 1 - kinds.size] ?? [];
			// Types that cannot be read accept anything.
			for (const one of folder ? [folder] : folders.keys())
				fail(`${name ?? 'types'}: ${line}`, one);
		}
	}
}

// ---- what refers to what ---------------------------------------------------------------------------------------------------

const matches = (selector, labels) => Object.entries(selector).every(([key, value]) => labels?.[key] === value);

function check(objects) {
	const of = (...kinds) => objects.filter(({ kind }) => kinds.includes(kind));
	const workloads = of('DaemonSet', 'Deployment');
	const pods = workloads.map((workload) => workload.spec.template);
	const ports = (template) => template.spec.containers.flatMap(({ ports: list = [] }) => list);
	const selected = (selector, what) => {
		const found = pods.filter((template) => matches(selector, template.metadata.labels));
		if (pods.length > 0 && found.length !== 1)
			fail(`${what} selects ${found.length} workloads`);
		return found;
	};
	const keys = objects.map(({ kind, metadata }) => `${kind} ${metadata.namespace ?? ''}/${metadata.name}`);
	for (const key of keys.filter((one, i) => keys.indexOf(one) !== i))
		fail(`${key} is there twice`);
	for (const object of objects)
		if (!CLUSTER_WIDE.includes(object.kind) && object.metadata.namespace !== 'ringside')
			fail(`${object.kind} ${object.metadata.name} has no namespace`);
	for (const { metadata, spec } of workloads) {
		const { template, selector } = spec;
		if (!matches(selector.matchLabels, template.metadata.labels))
			fail(`${metadata.name} does not select its own pods`);
		if (!of('ServiceAccount').some((account) => account.metadata.name === template.spec.serviceAccountName))
			fail(`${metadata.name}: no such account`);
		for (const container of template.spec.containers) {
			const context = container.securityContext ?? {};
			// Nothing else opens the kernel log of the node.
			if (context.privileged && (container.volumeMounts ?? []).some(({ mountPath }) => mountPath === '/dev/kmsg'))
				continue;
			if (!isDeepStrictEqual(context.capabilities?.drop, ['ALL']) || context.allowPrivilegeEscalation !== false ||
				context.readOnlyRootFilesystem !== true || context.privileged)
				fail(`${metadata.name}/${container.name} has more rights than it needs`);
			if (!container.resources?.requests?.memory || !container.resources?.limits?.memory)
				fail(`${metadata.name}/${container.name} has no request or no limit of memory`);
			const volumes = (template.spec.volumes ?? []).map(({ name }) => name);
			for (const { name } of container.volumeMounts ?? [])
				if (!volumes.includes(name))
					fail(`${metadata.name}: no volume ${name}`);
			for (const probe of [container.readinessProbe, container.livenessProbe])
				if (!ports({ spec: { containers: [container] } }).some(({ name }) => name === probe?.httpGet?.port))
					fail(`${metadata.name}: a probe without a port`);
		}
	}
	for (const { metadata, spec } of of('Service'))
		for (const template of selected(spec.selector, `Service ${metadata.name}`))
			for (const { targetPort, port } of spec.ports)
				if (!ports(template).some(({ name, containerPort }) => name === targetPort && containerPort === port))
					fail(`Service ${metadata.name}: no port ${targetPort} ${port}`);
	for (const { metadata, spec } of of('NetworkPolicy'))
		selected(spec.podSelector.matchLabels, `NetworkPolicy ${metadata.name}`);
	for (const { metadata, spec } of of('PodMonitor'))
		for (const template of selected(spec.selector.matchLabels, `PodMonitor ${metadata.name}`))
			for (const { port } of spec.podMetricsEndpoints)
				if (!ports(template).some(({ name }) => name === port))
					fail(`PodMonitor ${metadata.name}: no port ${port}`);
	for (const { metadata, spec } of of('Deployment').filter(({ metadata: { name } }) => name === 'ringside-hub')) {
		const { args } = spec.template.spec.containers[0];
		const [service, port] = args[args.indexOf('--dns') + 1].split(':');
		const found = of('Service').filter((one) => one.metadata.name === service);
		if (of('DaemonSet').length > 0 && !(found.length === 1 && found[0].spec.clusterIP === 'None' && found[0].spec.ports[0].port === Number(port)))
			fail(`${metadata.name}: --dns names no headless service`);
	}
	for (const { metadata, data } of of('ConfigMap'))
		if (metadata.labels.grafana_dashboard !== '1' || Object.values(data).some((text) => !JSON.parse(text).uid))
			fail(`ConfigMap ${metadata.name} is no dashboard of the sidecar`);
}

const [, , scratch, ...named] = process.argv;
const folders = new Map();
for (const name of named) {
	let rendered;
	[directory, rendered] = name.split('=');
	const objects = render(directory);
	for (const object of objects)
		validate(object, `${object.kind} ${object.metadata.name}`);
	check(objects);
	if (rendered) {
		const key = ({ kind, metadata }) => `${kind} ${metadata.name}`;
		const sorted = (list) => [...list].sort((a, b) => (key(a) < key(b) ? -1 : 1));
		if (!isDeepStrictEqual(sorted(objects), sorted(documents(rendered))))
			fail('kubectl renders something else');
	}
	folders.set(directory, objects);
}
if (scratch !== '-')
	checkTypes(scratch, folders);
for (const [folder, objects] of folders)
	if (!failed.has(folder))
		console.log(`${folder}: ${objects.length} objects`);
process.exit(failed.size > 0 ? 1 : 0);
