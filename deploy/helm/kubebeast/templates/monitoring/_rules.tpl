{{/*
The rule groups without the alerts in disabledAlerts, as YAML of a map with "groups". A group without rules is omitted. If a
release has no running learner, because it is paused or its learner is elsewhere, the alert about a missing learner is omitted
too. The rules are data, not templates: their braces are for Prometheus. Each release has its own rules, which are installed and
uninstalled with it.
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
PromQL (expr) restricted to this release by matchers in every selector. The label kubebeast_group starts like a metric, but is
not a metric.
*/}}
{{- define "kubebeast.ofRelease" -}}
{{- $matchers := printf "namespace=%q,job=%q" .root.Release.Namespace (include "kubebeast.fullname" .root) -}}
{{- $expr := .expr | replace "kubebeast_group" "@group" -}}
{{- $expr = regexReplaceAll "\\b((?:kubebeast|process)_\\w+)\\{" $expr (printf "${1}{%s," $matchers) -}}
{{- $expr = regexReplaceAll "\\b((?:kubebeast|process)_\\w+)([^\\w{]|$)" $expr (printf "${1}{%s}${2}" $matchers) -}}
{{- $expr | replace "@group" "kubebeast_group" -}}
{{- end -}}
