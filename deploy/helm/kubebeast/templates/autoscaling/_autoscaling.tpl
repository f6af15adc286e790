{{/*
How a group of env-servers scales by itself, whichever autoscaler does it.

The measure is the demand ratio: how many times the present fleet could be used until the busiest of learner, inference
and CPUs has no time left. A HorizontalPodAutoscaler wants replicas * ratio / target, so the fleet settles where
ratio = target = 1 / (1 - targetStarvedRatio), that is where the busiest idles the wanted share of its time. The learner's
share of waiting would not do as a measure: it stays high where inference is the limit, however large the fleet, and at 0
for a fleet that is far too large.
*/}}

{{/* Fails for settings of a group (the argument) that contradict each other. */}}
{{- define "kubebeast.autoscaling.check" -}}
{{- $where := printf "envservers: the autoscaling of the group %q" .name -}}
{{- $target := .autoscaling.targetStarvedRatio | float64 -}}
{{- if and .autoscaling.hpa.enabled .autoscaling.keda.enabled -}}
{{- fail (printf "%s has both hpa.enabled and keda.enabled: choose one" $where) -}}
{{- end -}}
{{- if lt (int64 .autoscaling.minReplicas) 1 -}}
{{- fail (printf "%s: minReplicas is %v, at least 1 is needed to measure" $where .autoscaling.minReplicas) -}}
{{- end -}}
{{- if gt (int64 .autoscaling.minReplicas) (int64 .autoscaling.maxReplicas) -}}
{{- fail (printf "%s: minReplicas is %v, above maxReplicas %v" $where .autoscaling.minReplicas .autoscaling.maxReplicas) -}}
{{- end -}}
{{- if or (lt $target 0.0) (ge $target 0.9) -}}
{{- fail (printf "%s: targetStarvedRatio is %v, must be from 0 to below 0.9" $where .autoscaling.targetStarvedRatio) -}}
{{- end -}}
{{- end -}}

{{/* API version of HorizontalPodAutoscaler: autoscaling/v2 exists from Kubernetes 1.23 on, v2beta2 until 1.25. */}}
{{- define "kubebeast.autoscaling.hpaApiVersion" -}}
{{- semverCompare ">=1.23.0-0" .Capabilities.KubeVersion.Version | ternary "autoscaling/v2" "autoscaling/v2beta2" -}}
{{- end -}}

{{/* Demand ratio to settle at, in thousandths: the argument is a group. */}}
{{- define "kubebeast.autoscaling.targetMilli" -}}
{{- round (divf 1000 (subf 1 .autoscaling.targetStarvedRatio)) 0 | int64 -}}
{{- end -}}

{{/*
How fast a group (the argument) may change, as YAML. It takes up to a minute until the steps of new pods show in the
measure: until then the old measure, multiplied with the new number of pods, would ask for far too many. So a need counts
once it has been there for longer than that, and the fleet at most doubles in a minute.
*/}}
{{- define "kubebeast.autoscaling.behavior" -}}
{{- $default := dict
  "scaleUp" (dict
    "stabilizationWindowSeconds" 90
    "policies" (list (dict "type" "Percent" "value" 100 "periodSeconds" 60)))
  "scaleDown" (dict
    "stabilizationWindowSeconds" 300
    "policies" (list (dict "type" "Percent" "value" 25 "periodSeconds" 300))) -}}
{{- .autoscaling.behavior | default $default | toYaml -}}
{{- end -}}

{{/* PromQL of the demand ratio of this release: what rules/kubebeast.yaml records for all. */}}
{{- define "kubebeast.autoscaling.query" -}}
{{- $matchers := printf "namespace=%q,service=%q" .Release.Namespace (include "kubebeast.learner.fullname" .) -}}
{{- .Files.Get "rules/demand.promql" | replace "%s" $matchers | trim -}}
{{- end -}}
