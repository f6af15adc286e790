{{/* The learner's settings and accounts. */}}

{{/*
The content of learner.yaml. Values are written as JSON, which is YAML: Helm holds numbers as floats and would print 50000000
as 5e+07.
*/}}
{{- define "kubebeast.learner.settings" -}}
{{- range $name, $value := include "kubebeast.learner.config" . | fromJson -}}
{{ $name }}: {{ toJson $value }}
{{ end -}}
{{- if and .Values.learner.gpu.count (not .Values.learner.config.device) -}}
# A learner that finds no GPU ends with an error; by itself it would train on the CPU.
device: cuda
{{ end -}}
{{- with include "kubebeast.learner.env" . -}}
# A new run takes its shapes from an env-server of this environment, whoever dials first.
env: {{ toJson . }}
{{ end -}}
address: 0.0.0.0:4431
http_address: 0.0.0.0:9090
savedir: /runs
xpid: {{ .Values.learner.xpid | default (include "kubebeast.fullname" .) | quote }}
progress: json
# A StatefulSet starts a learner that ended again; one that lingers stays, finished and ready.
linger: true
{{- with include "kubebeast.access.settings" (dict "root" . "side" "learner") }}
{{ . }}
{{- end }}
{{- end -}}

{{/* Command of the container in place of the image's, as a JSON array: another trainer, or torchrun. */}}
{{- define "kubebeast.learner.command" -}}
{{- $torchrun := list -}}
{{- if include "kubebeast.learner.isSeveral" . }}{{ $torchrun = list "python" "-m" "torch.distributed.run" }}{{ end -}}
{{- .Values.learner.command | default $torchrun | toJson -}}
{{- end -}}

{{/* Flags of the command that the chart has for the container, as a JSON array: dict "root" . "isFirst" BOOL. */}}
{{- define "kubebeast.learner.args" -}}
{{- $recipe := include "kubebeast.learner.recipe" .root -}}
{{- $args := list "learner" "--config=/etc/kubebeast/config/learner.yaml" (printf "--recipe=%s" $recipe) -}}
{{- if include "kubebeast.learner.isSeveral" .root -}}
{{- $args = concat (include "kubebeast.learner.torchrun" . | fromJsonArray) $args -}}
{{- end -}}
{{- empty .root.Values.learner.command | ternary $args list | toJson -}}
{{- end -}}

{{/* Variables of the container, as a JSON array: what learner.yaml says to a command that does not read it, or torchrun's. */}}
{{- define "kubebeast.learner.variables" -}}
{{- $variables := list -}}
{{- if .Values.learner.command -}}
{{- $settings := include "kubebeast.access.settings" (dict "root" . "side" "learner") | fromYaml -}}
{{- range $name, $value := merge (dict "address" "0.0.0.0:4431" "http_address" "0.0.0.0:9090") $settings -}}
{{- $variables = append $variables (dict "name" (printf "KUBEBEAST_%s" (upper $name)) "value" $value) -}}
{{- end -}}
{{- end -}}
{{- if include "kubebeast.learner.isSeveral" . }}{{ $variables = include "kubebeast.learner.torchrunVariables" . | fromJsonArray }}{{ end -}}
{{- toJson $variables -}}
{{- end -}}

{{- define "kubebeast.learner.serviceAccountName" -}}
{{- $own := include "kubebeast.learner.fullname" . -}}
{{- .Values.learner.serviceAccount.name | default (ternary $own "default" .Values.learner.serviceAccount.create) -}}
{{- end -}}

{{/* The environment that all groups play, unless the settings name one; nothing where groups play several. */}}
{{- define "kubebeast.learner.env" -}}
{{- $ids := list -}}
{{- range include "kubebeast.envservers" . | fromJsonArray }}{{ $ids = append $ids .env }}{{ end -}}
{{- if and (eq 1 (len (uniq $ids))) (not .Values.learner.config.env) }}{{ first $ids }}{{ end -}}
{{- end -}}

{{/* Where env-servers dial; of several learners each stream chooses one among the addresses of their pods. */}}
{{- define "kubebeast.learner.address" -}}
{{- if include "kubebeast.learner.isSeveral" . -}}
{{- $last := add 4430 (include "kubebeast.learner.ranksPerPod" .) -}}
{{- $ports := eq 4431 (int $last) | ternary "4431" (printf "4431-%d" $last) -}}
{{- printf "dns:%s.%s.svc:%s" (include "kubebeast.learner.headlessName" .) .Release.Namespace $ports -}}
{{- else if .Values.learner.enabled -}}
{{- printf "%s.%s.svc:%d" (include "kubebeast.learner.fullname" .) .Release.Namespace (int .Values.learner.service.port) -}}
{{- else -}}
{{- .Values.learner.address -}}
{{- end -}}
{{- end -}}

{{/* Image of the learner: dict of repository and tag. An empty tag is that of the variant with CUDA where there is a GPU. */}}
{{- define "kubebeast.learner.image" -}}
{{- $tag := printf "%s%s" .Chart.AppVersion (empty .Values.learner.gpu.count | ternary "" "-cuda") -}}
{{- merge (dict "tag" (.Values.learner.image.tag | default $tag)) .Values.learner.image | toYaml -}}
{{- end -}}

{{/* Settings of the values, as JSON. */}}
{{- define "kubebeast.learner.config" -}}
{{- $demo := empty .Values.demo.enabled | ternary dict .Values.demo.learner.config -}}
{{- merge (deepCopy .Values.learner.config) $demo | toJson -}}
{{- end -}}

{{/* Settings known to learn, by name. */}}
{{- define "kubebeast.learner.recipe" -}}
{{- (ternary .Values.demo .Values (not (empty .Values.demo.enabled))).learner.recipe -}}
{{- end -}}

{{/* Resources of the container: those of the values and the GPUs, whose requests equal their limits. */}}
{{- define "kubebeast.learner.resources" -}}
{{- $resources := deepCopy (ternary .Values.demo .Values (not (empty .Values.demo.enabled))).learner.resources -}}
{{- with .Values.learner.gpu -}}
{{- if .count -}}
{{- $_ := set $resources "limits" (set ($resources.limits | default dict) .resourceName (.count | int | toString)) -}}
{{- end -}}
{{- end -}}
{{- toYaml $resources -}}
{{- end -}}

{{/* The volume of the run where the chart makes no claim for it. Argument: the values of learner. */}}
{{- define "kubebeast.learner.runsVolume" -}}
- name: runs
  {{- if .persistence.enabled }}
  persistentVolumeClaim:
    claimName: {{ .persistence.existingClaim | quote }}
  {{- else }}
  emptyDir: {}
  {{- end }}
{{- end -}}

{{/* The claim that holds the run. A StatefulSet's claims are immutable: no label here may change with a version. */}}
{{- define "kubebeast.learner.claimTemplate" -}}
{{- with .Values.learner.persistence -}}
- apiVersion: v1
  kind: PersistentVolumeClaim
  metadata:
    name: runs
    labels:
      {{- include "kubebeast.selectorLabels" (dict "root" $ "component" "learner") | nindent 6 }}
    {{- with .annotations }}
    annotations:
      {{- toYaml . | nindent 6 }}
    {{- end }}
  spec:
    accessModes:
      {{- toYaml .accessModes | nindent 6 }}
    {{- if eq "-" (.storageClassName | default "") }}
    storageClassName: ""
    {{- else if .storageClassName }}
    storageClassName: {{ .storageClassName | quote }}
    {{- end }}
    resources:
      requests:
        storage: {{ .size | quote }}
{{- end -}}
{{- end -}}
