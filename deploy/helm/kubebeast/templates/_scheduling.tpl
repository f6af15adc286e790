{{/* Selection of the nodes of a pod. Argument of all templates: dict "root" . "pod" the values of the pod. */}}

{{/* Labels that the node must have, as YAML of a map: those of the values, and the OS and architecture of the images. */}}
{{- define "kubebeast.nodeSelector" -}}
{{- $selector := merge (deepCopy (.pod.nodeSelector | default dict)) (dict "kubernetes.io/os" "linux") -}}
{{- with .root.Values.image.architecture }}{{ $selector = merge $selector (dict "kubernetes.io/arch" .) }}{{ end -}}
{{- with $selector }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Tolerations as YAML of a list: those of the values, and the time for which the pod stays on a node that is lost. A toleration in
the values for the same taint, or for all taints, takes precedence.
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

{{/* Affinity as YAML: that of the values; each of its node selector terms also excludes the labels in `avoidNodesWith`. */}}
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

{{/* Constraints as YAML. Without a selector of its own, a constraint counts the pods with the labels in "selector". */}}
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

{{/*
Labels of a workload as YAML of a map: those of the values (the argument), and its queue. Kueue reads this label of a
StatefulSet, Job, JobSet and Deployment, and of no other object of the chart.
*/}}
{{- define "kubebeast.queueLabels" -}}
{{- $labels := deepCopy (.labels | default dict) -}}
{{- with .queueName }}{{ $_ := set $labels "kueue.x-k8s.io/queue-name" . }}{{ end -}}
{{- with $labels }}{{ toYaml . }}{{ end -}}
{{- end -}}
