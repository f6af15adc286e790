{{/* On which nodes a pod runs. The argument of all: dict "root" . "pod" the values of the pod. */}}

{{/* Labels that the node must have, as YAML of a map: those of the values, and the architecture of the images. */}}
{{- define "kubebeast.nodeSelector" -}}
{{- $selector := deepCopy (.pod.nodeSelector | default dict) -}}
{{- with .root.Values.image.architecture }}{{ $selector = merge $selector (dict "kubernetes.io/arch" .) }}{{ end -}}
{{- with $selector }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Tolerations as YAML of a list: those of the values, and how long the pod stays on a node that is lost. A toleration of the
values for the same taint, or for all, says that itself.
*/}}
{{- define "kubebeast.tolerations" -}}
{{- $tolerations := .pod.tolerations | default list -}}
{{- $named := list -}}
{{- range $tolerations }}{{ $named = append $named (.key | default "") }}{{ end -}}
{{- if not (or (kindIs "invalid" .pod.lostNodeSeconds) (has "" $named)) -}}
{{- range $taint := list "node.kubernetes.io/not-ready" "node.kubernetes.io/unreachable" -}}
{{- if not (has $taint $named) -}}
{{- $seconds := int $.pod.lostNodeSeconds -}}
{{- $tolerations = append $tolerations (dict "key" $taint "operator" "Exists" "effect" "NoExecute" "tolerationSeconds" $seconds) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- with $tolerations }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Affinity as YAML: that of the values, in each of its terms without the labels of `avoidNodesWith`. */}}
{{- define "kubebeast.affinity" -}}
{{- $affinity := deepCopy (.pod.affinity | default dict) -}}
{{- $absent := list -}}
{{- range .pod.avoidNodesWith }}{{ $absent = append $absent (dict "key" . "operator" "DoesNotExist") }}{{ end -}}
{{- if $absent -}}
{{- $terms := list -}}
{{- range dig "nodeAffinity" "requiredDuringSchedulingIgnoredDuringExecution" "nodeSelectorTerms" (list dict) $affinity -}}
{{- $terms = append $terms (set . "matchExpressions" (concat (.matchExpressions | default list) $absent)) -}}
{{- end -}}
{{- $required := dict "requiredDuringSchedulingIgnoredDuringExecution" (dict "nodeSelectorTerms" $terms) -}}
{{- $affinity = mergeOverwrite $affinity (dict "nodeAffinity" $required) -}}
{{- end -}}
{{- with $affinity }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/* Constraints without a selector count the pods of their own kind, whose labels are "selector", as YAML. */}}
{{- define "kubebeast.topologySpreadConstraints" -}}
{{- $constraints := list -}}
{{- range .pod.topologySpreadConstraints -}}
{{- $constraint := deepCopy . -}}
{{- if not (hasKey $constraint "labelSelector") -}}
{{- $_ := set $constraint "labelSelector" (dict "matchLabels" (fromYaml $.selector)) -}}
{{- end -}}
{{- $constraints = append $constraints $constraint -}}
{{- end -}}
{{- with $constraints }}{{ toYaml . }}{{ end -}}
{{- end -}}
