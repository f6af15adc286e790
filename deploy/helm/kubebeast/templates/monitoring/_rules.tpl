{{/*
The rule groups without the alerts named in disabledAlerts, as YAML of a map with "groups"; a group left without rules
is left out. The rules are data, not templates: their own braces are for Prometheus.
*/}}
{{- define "kubebeast.ruleGroups" -}}
{{- $disabled := .Values.monitoring.prometheusRule.disabledAlerts -}}
{{- $known := list -}}
{{- $groups := list -}}
{{- range (.Files.Get "rules/kubebeast.yaml" | fromYaml).groups -}}
{{- $rules := list -}}
{{- range .rules -}}
{{- with .alert -}}{{- $known = append $known . -}}{{- end -}}
{{- if not (and .alert (has .alert $disabled)) -}}
{{- $rules = append $rules . -}}
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
