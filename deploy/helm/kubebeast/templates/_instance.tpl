{{/*
Names and labels that distinguish this chart from others in the namespace, including others of the same release: an umbrella
chart may contain it several times. Results of a lookup are cached in the values, because each lookup is a request to the API
server.
*/}}

{{/*
The alias that an umbrella chart gives this chart, a part of all names; empty without an alias. Charts before 0.3 ignored the
alias: objects that they have created keep their names.
*/}}
{{- define "kubebeast.alias" -}}
{{- if and (ne .Chart.Name "kubebeast") (contains "/charts/" .Template.BasePath) -}}
{{- if not (hasKey .Values "aliasInNames") -}}
{{- $name := include "kubebeast.shortened" (dict "name" .Release.Name "max" 40) -}}
{{- $learner := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-learner" $name) | toJson | fromJson -}}
{{- $chart := dig "metadata" "labels" "helm.sh/chart" "" $learner -}}
{{- $isOlder := regexMatch (printf "^%s-[0-9]+[.]" .Chart.Name) $chart -}}
{{- $_ := set .Values "aliasInNames" (ternary "" (.Chart.Name | lower | replace "_" "-") $isOlder) -}}
{{- end -}}
{{- .Values.aliasInNames -}}
{{- end -}}
{{- end -}}

{{/*
Value of app.kubernetes.io/instance: the full name, which is unique in the namespace. Charts before 0.3 used the name of the
release. Selectors are immutable, so the name of the release stays if such workloads exist.
*/}}
{{- define "kubebeast.instance" -}}
{{- if not (hasKey .Values "instanceInSelectors") -}}
{{- $fullname := include "kubebeast.fullname" . -}}
{{- $instance := .Values.instanceOverride -}}
{{- if and (not $instance) (ne $fullname .Release.Name) (include "kubebeast.instance.isOlder" .) -}}
{{- $instance = .Release.Name -}}
{{- end -}}
{{- $_ := set .Values "instanceInSelectors" ($instance | default $fullname) -}}
{{- end -}}
{{- .Values.instanceInSelectors -}}
{{- end -}}

{{/*
"true" if workloads of an older chart exist, which select by the name of the release; otherwise empty. A learner's pod counts
too: its StatefulSet may have been deleted without it, e.g. for a larger volume.
*/}}
{{- define "kubebeast.instance.isOlder" -}}
{{- $learner := include "kubebeast.learner.fullname" . -}}
{{- $found := list
  (lookup "apps/v1" "StatefulSet" .Release.Namespace $learner)
  (lookup "v1" "Pod" .Release.Namespace (printf "%s-0" $learner)) -}}
{{- range include "kubebeast.envservers" . | fromJsonArray -}}
{{- $found = append $found (lookup "apps/v1" "Deployment" $.Release.Namespace .fullname) -}}
{{- end -}}
{{- $isOlder := false -}}
{{- range $found -}}
{{- $object := toJson . | fromJson -}}
{{- $labels := dig "spec" "selector" "matchLabels" (dig "metadata" "labels" dict $object) $object -}}
{{- $isOurs := eq "kubebeast" (get $labels "app.kubernetes.io/name") -}}
{{- $isOlder = or $isOlder (and $isOurs (eq $.Release.Name (get $labels "app.kubernetes.io/instance"))) -}}
{{- end -}}
{{- if $isOlder }}true{{ end -}}
{{- end -}}
