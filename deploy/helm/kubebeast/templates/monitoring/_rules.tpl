{{/*
The rule groups without the alerts named in disabledAlerts, as YAML of a map with "groups"; a group left without rules
is left out. A release that wants no learner, paused or with one elsewhere, has no alert that misses one. The rules are data, not templates: their own braces are for Prometheus. Each release has rules of its own,
which come and go with it.
*/}}
{{- define "kubebeast.ruleGroups" -}}
{{- $disabled := .Values.monitoring.prometheusRule.disabledAlerts | default list -}}
{{- $missing := list -}}
{{- if or .Values.paused (not .Values.learner.enabled) }}{{ $missing = list "KubeBeastLearnerDown" }}{{ end -}}
{{- $link := .Values.monitoring.prometheusRule.runbookUrl -}}
{{- $known := list -}}
{{- $groups := list -}}
{{- range (.Files.Get "rules/kubebeast.yaml" | fromYaml).groups -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- with .alert -}}{{- $known = append $known . -}}{{- end -}}
{{- if not (and .alert (has .alert (concat $disabled $missing))) -}}
{{- $rule := set . "expr" (include "kubebeast.ofRelease" (dict "root" $ "expr" .expr)) -}}
{{- if and .alert $link -}}
{{- $_ := set .annotations "runbook_url" (printf "%s#%s" $link (lower .alert)) -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- if $rules -}}
{{- $groups = append $groups (dict "name" .name "rules" $rules) -}}
{{- end -}}
{{- end -}}
{{- range $disabled -}}
{{- if not (has . $known) -}}
{{- fail (printf "monitoring.prometheusRule.disabledAlerts: there is no alert %q" .) -}}
{{- end -}}
{{- end -}}
{{- dict "groups" $groups | toYaml -}}
{{- end -}}

{{/*
PromQL (expr) about this release only: matchers in every selector. What begins like a metric and is none is the label
kubebeast_group.
*/}}
{{- define "kubebeast.ofRelease" -}}
{{- $matchers := printf "namespace=%q,job=%q" .root.Release.Namespace .root.Release.Name -}}
{{- $expr := .expr | replace "kubebeast_group" "@group" -}}
{{- $expr = regexReplaceAll "\\b((?:kubebeast|process)_\\w+)\\{" $expr (printf "${1}{%s," $matchers) -}}
{{- $expr = regexReplaceAll "\\b((?:kubebeast|process)_\\w+)([^\\w{]|$)" $expr (printf "${1}{%s}${2}" $matchers) -}}
{{- $expr | replace "@group" "kubebeast_group" -}}
{{- end -}}
