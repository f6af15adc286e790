{{/*
How a group of env-servers scales by itself, whichever autoscaler does it.

The measure is the demand ratio: how many times the present fleet the learner could use. A HorizontalPodAutoscaler wants
replicas * ratio / target, so the fleet settles where ratio = target = 1 / (1 - targetStarvedRatio), that is where the
learner waits the wanted share of its time. The share itself would not do as a measure: it says little about how much is
missing, and stays at 0 for a fleet that is far too large.
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
How fast a group (the argument) may change, as YAML. A new pod takes up to a minute until its steps show in the measure:
the fleet doubles once in that time and no faster.
*/}}
{{- define "kubebeast.autoscaling.behavior" -}}
{{- $default := dict
  "scaleUp" (dict "policies" (list (dict "type" "Percent" "value" 100 "periodSeconds" 60)))
  "scaleDown" (dict
    "stabilizationWindowSeconds" 300
    "policies" (list (dict "type" "Percent" "value" 25 "periodSeconds" 300))) -}}
{{- .autoscaling.behavior | default $default | toYaml -}}
{{- end -}}

{{/* PromQL of the demand ratio of this release; rules/kubebeast.yaml records the same for all. */}}
{{- define "kubebeast.autoscaling.query" -}}
{{- $of := printf "{namespace=%q,service=%q}" .Release.Namespace (include "kubebeast.learner.fullname" .) -}}
max(
  (kubebeast_learner_step{{ $of }} < bool kubebeast_learner_total_steps{{ $of }})
  * (1 - avg_over_time(kubebeast_streams_parked{{ $of }}[2m]) / clamp_min(avg_over_time(kubebeast_streams{{ $of }}[2m]), 1))
  / (1 - clamp_max(kubebeast_learner_starved_ratio{{ $of }}, 0.9))
)
{{- end -}}
