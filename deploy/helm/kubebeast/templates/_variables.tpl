{{/* Passes values of the user to a process unchanged, through JSON, environment variables and arguments. */}}

{{/*
A value as the string of a setting: strings unchanged, all other values as JSON, in which numbers keep their digits (Helm itself
would print 5e+07).
*/}}
{{- define "kubebeast.text" -}}
{{- kindIs "string" . | ternary . (toJson .) -}}
{{- end -}}

{{/* A map of settings as a JSON object of strings, because Helm rounds numbers above 2^53 if it reads them again. */}}
{{- define "kubebeast.texts" -}}
{{- $texts := dict -}}
{{- range $name, $value := . }}{{ $_ := set $texts $name (include "kubebeast.text" $value) }}{{ end -}}
{{- toJson $texts -}}
{{- end -}}

{{/* A literal string in a container's variables and arguments: Kubernetes expands $(NAME) there, and turns $$ into $. */}}
{{- define "kubebeast.literal" -}}
{{- replace "$" "$$" . -}}
{{- end -}}

{{/* Settings as variables, a YAML list for `fromYamlArray`. Argument: the result of kubebeast.texts. */}}
{{- define "kubebeast.settingVariables" -}}
{{- $variables := list -}}
{{- range $name, $text := fromJson . -}}
{{- $literal := include "kubebeast.literal" $text -}}
{{- $variables = append $variables (dict "name" (printf "KUBEBEAST_%s" (upper $name)) "value" $literal) -}}
{{- end -}}
{{- toYaml $variables -}}
{{- end -}}

{{/*
A list of the chart, extended by items of the values, as YAML: dict "own" LIST "added" LIST "key" KEY. If several items have the
same KEY, the last one counts, i.e. the user's: Kubernetes and Helm 4 reject duplicate names and mountPaths.
*/}}
{{- define "kubebeast.extended" -}}
{{- $key := .key -}}
{{- $all := concat (.own | default list) (.added | default list) -}}
{{- $last := dict -}}
{{- range $index, $item := $all }}{{ $_ := set $last (get $item $key) $index }}{{ end -}}
{{- $items := list -}}
{{- range $index, $item := $all -}}
{{- if eq $index (get $last (get $item $key)) }}{{ $items = append $items $item }}{{ end -}}
{{- end -}}
{{- with $items }}{{ toYaml . }}{{ end -}}
{{- end -}}
