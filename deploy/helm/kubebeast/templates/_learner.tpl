{{/* The learner's settings and accounts. */}}

{{/*
The content of learner.yaml. Values are written as JSON, which is valid YAML: Helm stores numbers as floats and would print
50000000 as 5e+07.
*/}}
{{- define "kubebeast.learner.settings" -}}
{{- $demo := empty .Values.demo.enabled | ternary dict .Values.demo.learner.config -}}
{{- range $name, $value := merge (deepCopy .Values.learner.config) $demo -}}
{{ $name }}: {{ toJson $value }}
{{ end -}}
{{- if and .Values.learner.gpu.count (not .Values.learner.config.device) -}}
# If the learner finds no GPU, it exits with an error. Without this setting it would train on the CPU.
device: cuda
{{ end -}}
{{- with include "kubebeast.learner.env" . -}}
# A new run takes its shapes from an env-server of this environment, regardless of the order in which env-servers dial.
env: {{ toJson . }}
{{ end -}}
address: "[::]:4431"
http_address: "[::]:9090"
xpid: {{ include "kubebeast.learner.xpid" . | quote }}
progress: json
{{ include "kubebeast.learner.endSettings" . }}
{{- with .Values.learner.nodeNotice }}
node_notice: {{ toJson . }}
{{- end }}
{{- with include "kubebeast.access.settings" (dict "root" . "side" "learner") }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Settings that depend on the workload: the end of a learner that has finished, or that SIGTERM stops. */}}
{{- define "kubebeast.learner.endSettings" -}}
{{- if include "kubebeast.learner.isJob" . -}}
# A Job takes exit status 0 for the end of the run. Its pod may start while the predecessor still writes a checkpoint.
{{- with int .Values.learner.job.lingerSeconds }}
linger: true
linger_s: {{ . }}
{{- end }}
stop_status: 143
wait_for_run: true
{{- else -}}
# A StatefulSet restarts a learner that exits. With linger, a finished learner keeps running and stays ready.
linger: true
{{- end -}}
{{- end -}}

{{/* Command of the container that replaces the image's, as a JSON array: another trainer, or torchrun. */}}
{{- define "kubebeast.learner.command" -}}
{{- $torchrun := list -}}
{{- if include "kubebeast.learner.isSeveral" . }}{{ $torchrun = list "python" "-m" "torch.distributed.run" }}{{ end -}}
{{- .Values.learner.command | default $torchrun | toJson -}}
{{- end -}}

{{/*
Arguments of the container as a JSON array: dict "root" . "isFirst" BOOL. Additional flags of the learner are passed literally.
In those of another command, Kubernetes expands $(NAME) to the value of a variable. A sweep gives its runs their arguments.
*/}}
{{- define "kubebeast.learner.args" -}}
{{- $recipe := include "kubebeast.learner.recipe" .root -}}
{{- /* As a flag, because the image has a variable for it, which overrides the file. */ -}}
{{- $savedir := include "kubebeast.learner.savedir" .root | include "kubebeast.literal" | printf "--savedir=%s" -}}
{{- $args := list "learner" "--config=/etc/kubebeast/config/learner.yaml" (printf "--recipe=%s" $recipe) $savedir -}}
{{- if include "kubebeast.learner.isSeveral" .root -}}
{{- $args = concat (include "kubebeast.learner.torchrun" . | fromJsonArray) $args -}}
{{- end -}}
{{- if .root.Values.learner.command -}}
{{- $args = .root.Values.learner.extraArgs -}}
{{- else -}}
{{- range .root.Values.learner.extraArgs }}{{ $args = append $args (include "kubebeast.literal" .) }}{{ end -}}
{{- end -}}
{{- if include "kubebeast.isSweep" .root }}{{ $args = list }}{{ end -}}
{{- $args | default list | toJson -}}
{{- end -}}

{{/* Variables of the container as a JSON array: settings for another trainer, those of torchrun, the compiler's cache. */}}
{{- define "kubebeast.learner.variables" -}}
{{- $variables := list -}}
{{- if include "kubebeast.isSweep" . }}{{ $variables = include "kubebeast.sweep.learnerSettings" . | include "kubebeast.settingVariables" | fromYamlArray }}{{ end -}}
{{- if .Values.learner.command -}}
{{- $settings := include "kubebeast.access.settings" (dict "root" . "side" "learner") | fromYaml -}}
{{- range $name, $value := merge (dict "address" "[::]:4431" "http_address" "[::]:9090") $settings -}}
{{- $variables = append $variables (dict "name" (printf "KUBEBEAST_%s" (upper $name)) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- if include "kubebeast.learner.isSeveral" . }}{{ $variables = include "kubebeast.learner.torchrunVariables" . | fromJsonArray }}{{ end -}}
{{- if .Values.learner.gpu.count -}}
{{- /* A restarted learner finds the kernels that torch.compile has made, and a restarted container in /tmp. */ -}}
{{- $volume := empty .Values.learner.storage.url | ternary "/runs" "/tmp" -}}
{{- $variables = append $variables (dict "name" "TORCHINDUCTOR_CACHE_DIR" "value" (printf "%s/.torchinductor" $volume)) -}}
{{- end -}}
{{- toJson $variables -}}
{{- end -}}

{{/* Name of the run. */}}
{{- define "kubebeast.learner.xpid" -}}
{{- .Values.learner.xpid | default (include "kubebeast.fullname" .) -}}
{{- end -}}

{{- define "kubebeast.learner.serviceAccountName" -}}
{{- $own := include "kubebeast.learner.fullname" . -}}
{{- .Values.learner.serviceAccount.name | default (ternary $own "default" .Values.learner.serviceAccount.create) -}}
{{- end -}}

{{/* The environment of all groups, unless the settings contain one; empty if the groups have several environments. */}}
{{- define "kubebeast.learner.env" -}}
{{- $ids := list -}}
{{- range include "kubebeast.envservers" . | fromJsonArray }}{{ $ids = append $ids .env }}{{ end -}}
{{- if and (eq 1 (len (uniq $ids))) (not .Values.learner.config.env) }}{{ first $ids }}{{ end -}}
{{- end -}}

{{/*
The address that env-servers dial. With several learners, each stream chooses one of the addresses of their pods; in a sweep, the
broker chooses it.
*/}}
{{- define "kubebeast.learner.address" -}}
{{- if include "kubebeast.isSweep" . -}}
{{- printf "broker:%s" (include "kubebeast.broker.address" .) -}}
{{- else if include "kubebeast.learner.isSeveral" . -}}
{{- $last := add 4430 (include "kubebeast.learner.ranksPerPod" .) -}}
{{- $ports := eq 4431 (int $last) | ternary "4431" (printf "4431-%d" $last) -}}
{{- printf "dns:%s.%s.svc:%s" (include "kubebeast.learner.headlessName" .) .Release.Namespace $ports -}}
{{- else if .Values.learner.enabled -}}
{{- printf "%s.%s.svc:%d" (include "kubebeast.learner.fullname" .) .Release.Namespace (int .Values.learner.service.port) -}}
{{- else -}}
{{- .Values.learner.address -}}
{{- end -}}
{{- end -}}

{{/* Image of the learner: dict of repository and tag. With a GPU, the default tag is that of the CUDA variant. */}}
{{- define "kubebeast.learner.image" -}}
{{- $tag := printf "%s%s" .Chart.AppVersion (empty .Values.learner.gpu.count | ternary "" "-cuda") -}}
{{- merge (dict "tag" (.Values.learner.image.tag | default $tag)) .Values.learner.image | toYaml -}}
{{- end -}}

{{/* Name of the recipe, i.e. of settings that are known to learn. */}}
{{- define "kubebeast.learner.recipe" -}}
{{- (ternary .Values.demo .Values (not (empty .Values.demo.enabled))).learner.recipe -}}
{{- end -}}

{{/* Resources of the container: those of the values, and the GPUs, whose requests equal their limits. */}}
{{- define "kubebeast.learner.resources" -}}
{{- $resources := deepCopy (ternary .Values.demo .Values (not (empty .Values.demo.enabled))).learner.resources -}}
{{- with .Values.learner.gpu -}}
{{- if .count -}}
{{- $_ := set $resources "limits" (set ($resources.limits | default dict) .resourceName (.count | int | toString)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}
