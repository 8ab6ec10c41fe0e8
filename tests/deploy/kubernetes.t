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
validate() { # folder [rendered]
	node tests/deploy/kubernetes.mjs - "$@"
}
# The same with the types: seconds of compiling.
validate_types() { # folder
	rm -rf "$tap_scratch/types"
	mkdir "$tap_scratch/types"
	node tests/deploy/kubernetes.mjs "$tap_scratch/types" "$@"
}
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
for folder in base hub monitoring shared-shm all with-gpu-facts with-kernel-log with-both; do
	if [ -n "$has_kubectl" ]; then
		expect_ok "kubectl renders $folder" eval "kubectl kustomize $kubernetes/$folder >$tap_scratch/$folder.yaml"
		expect_ok "its objects are valid, and as we render them" validate "$kubernetes/$folder" "$tap_scratch/$folder.yaml"
	else
		expect_ok "$folder is valid (without kubectl)" validate "$kubernetes/$folder"
	fi
done
expect_ok "Kubernetes' types accept all of it" validate_types "$kubernetes/all"
expect_ok "and the components" validate_types "$kubernetes/with-both"

# The checks find mistakes.
check=validate
wrong() { # sentence pattern sed-expression file
	rm -rf "$tap_scratch/deploy"
	cp -r deploy "$tap_scratch/deploy"
	sed -i "$3" "$tap_scratch/deploy/kubernetes/$4"
	expect_complaint "$1" "$2" "$check" "$tap_scratch/deploy/kubernetes/all"
}
check=validate_types wrong "a misspelled field" 'hostPid' 's/hostPID/hostPid/' base/agent.yaml
wrong "a value of the wrong type" 'hostPID must be boolean' 's/hostPID: true/hostPID: "yes"/' base/agent.yaml
wrong "a service that finds no agent" 'Service ringside-agent' 's/targetPort: metrics/targetPort: metric/' base/agent.yaml
wrong "a hub that asks nobody" 'no headless service' 's/ringside-agent:9749/ringside-agents:9749/' hub/hub.yaml
wrong "a privileged container that reads no kernel log" 'more rights' 's/readOnlyRootFilesystem: true/privileged: true/' base/agent.yaml
wrong "a container with more rights" 'more rights' 's/drop: \["ALL"\]/drop: ["KILL"]/' hub/hub.yaml

tap_done
