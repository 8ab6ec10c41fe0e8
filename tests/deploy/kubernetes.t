#!/usr/bin/env bash
# The kustomize folders: generated parts are up to date, every object matches the schema of its API, and they fit together.
. "$(dirname "$0")/../tap.sh"

command -v node >/dev/null || tap_skip_all "node is not installed"
for package in kubernetes-models @kubernetes-models/prometheus-operator typescript yaml; do
	[ -d "npm/node_modules/$package" ] || tap_skip_all "npm/node_modules/$package is not installed: run scripts/install-npm check"
done
kubernetes=deploy/kubernetes

expect_ok "the rules can be generated" scripts/make-kubernetes "$tap_scratch/rules.yaml"
expect_ok "they are up to date (else run scripts/make-kubernetes)" diff -u "$kubernetes/monitoring/rules.yaml" "$tap_scratch/rules.yaml"
grown=$(node -e '
	const YAML = require("./npm/node_modules/yaml"), fs = require("fs"), from = "deploy/prometheus/rules/";
	const ours = fs.readdirSync(from).map((file) => YAML.parse(fs.readFileSync(from + file, "utf8")));
	const theirs = YAML.parseAllDocuments(fs.readFileSync(process.argv[1], "utf8")).map((one) => one.toJS()).filter((one) => one);
	require("assert").deepStrictEqual(theirs.map(({ spec }) => spec), ours);
	console.log(ours.length > 0 ? "same" : "none");' "$kubernetes/monitoring/rules.yaml" 2>&1)
expect_same "and say the same as those of Prometheus" "$grown" same

# kubectl renders and applies; where it is not installed, only our own rendering is checked.
has_kubectl=
kubectl kustomize "$kubernetes/base" >/dev/null 2>&1 && has_kubectl=yes
# The components, as an overlay uses them.
cp -r deploy "$tap_scratch/with"
kubernetes=$tap_scratch/with/kubernetes
for name in gpu-facts kernel-log; do
	mkdir "$kubernetes/with-$name"
	printf '%s\n' 'apiVersion: kustomize.config.k8s.io/v1beta1' 'kind: Kustomization' 'namespace: ringside' 'resources: [../base]' \
		"components: [../$name]" >"$kubernetes/with-$name/kustomization.yaml"
done
mkdir "$kubernetes/with-both"
sed 's/components: .*/components: [..\/gpu-facts, ..\/kernel-log]/' "$kubernetes/with-gpu-facts/kustomization.yaml" >"$kubernetes/with-both/kustomization.yaml"
folders=(base hub monitoring shared-shm all with-gpu-facts with-kernel-log with-both)
named=()
for folder in "${folders[@]}"; do
	if [ -n "$has_kubectl" ]; then
		expect_ok "kubectl renders $folder" eval "kubectl kustomize $kubernetes/$folder >$tap_scratch/$folder.yaml"
		named+=("$kubernetes/$folder=$tap_scratch/$folder.yaml")
	else
		named+=("$kubernetes/$folder")
	fi
done
said=$(node tests/deploy/kubernetes.mjs - "${named[@]}" 2>&1)
is_valid() { # folder, of $said
	grep "^$1: " <<<"$said"
	grep -qE "^$1: [0-9]+ objects$" <<<"$said"
}
for folder in "${folders[@]}"; do
	expect_ok "objects of $folder are valid, and as kubectl renders them (if it is installed)" is_valid "$kubernetes/$folder"
done

# The checks find mistakes.
mistake() { # name sed-expression file
	cp -r deploy "$tap_scratch/$1"
	sed -i "$2" "$tap_scratch/$1/kubernetes/$3"
	mistakes+=("$tap_scratch/$1/kubernetes/all")
}
mistakes=()
mistake type 's/hostPID: true/hostPID: "yes"/' base/agent.yaml
mistake target 's/targetPort: metrics/targetPort: metric/' base/agent.yaml
mistake dns 's/ringside-agent:9749/ringside-agents:9749/' hub/hub.yaml
mistake privileged 's/readOnlyRootFilesystem: true/privileged: true/' base/agent.yaml
mistake rights 's/drop: \["ALL"\]/drop: ["KILL"]/' hub/hub.yaml
said=$(node tests/deploy/kubernetes.mjs - "${mistakes[@]}" 2>&1)
expect_complaint "a value of the wrong type" 'hostPID must be boolean' is_valid "$tap_scratch/type/kubernetes/all"
expect_complaint "a service that finds no agent" 'Service ringside-agent' is_valid "$tap_scratch/target/kubernetes/all"
expect_complaint "a hub that asks nobody" 'no headless service' is_valid "$tap_scratch/dns/kubernetes/all"
expect_complaint "a privileged container that reads no kernel log" 'more rights' is_valid "$tap_scratch/privileged/kubernetes/all"
expect_complaint "a container with more rights" 'more rights' is_valid "$tap_scratch/rights/kubernetes/all"

# The same with the types: seconds of compiling.
mistakes=()
mistake field 's/hostPID/hostPid/' base/agent.yaml
mkdir "$tap_scratch/types"
said=$(node tests/deploy/kubernetes.mjs "$tap_scratch/types" "$kubernetes/all" "$kubernetes/with-both" "${mistakes[@]}" 2>&1)
expect_ok "Kubernetes' types accept all of it" is_valid "$kubernetes/all"
expect_ok "and the components" is_valid "$kubernetes/with-both"
expect_complaint "but not a misspelled field" 'hostPid' is_valid "$tap_scratch/field/kubernetes/all"

tap_done
