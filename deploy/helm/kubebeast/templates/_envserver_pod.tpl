{{/* The pod of an env-server, which the Deployments and the test share. Arguments: dict "root" . "group" GROUP. */}}

{{/* Settings of kubebeast-envserver by name, as JSON. */}}
{{- define "kubebeast.envserver.settings" -}}
{{- $settings := deepCopy (.group.config | default dict) -}}
{{- $_ := set $settings "address" (include "kubebeast.learner.address" .root) -}}
{{- $_ := set $settings "http_address" "0.0.0.0:9091" -}}
{{- $_ := set $settings "env" .group.env -}}
{{- $_ := set $settings "preset" .group.preset -}}
{{- $_ := set $settings "env_kwargs" (toJson (.group.kwargs | default dict)) -}}
{{- $_ := set $settings "wrappers" (toJson (.group.wrappers | default list)) -}}
{{- $_ := set $settings "time_limit" (.group.timeLimit | default 0) -}}
{{- $_ := set $settings "num_streams" .group.numStreams -}}
{{- $_ := set $settings "envs_per_stream" .group.envsPerStream -}}
{{- if not (kindIs "invalid" .group.seed) }}{{ $_ := set $settings "seed" .group.seed }}{{ end -}}
{{- include "kubebeast.access.settings" (dict "root" .root "side" "envserver") | fromYaml | merge $settings | toJson -}}
{{- end -}}

{{/* Settings as environment variables. Argument: a JSON object. Numbers go through JSON: Helm would print 5e+07. */}}
{{- define "kubebeast.envserver.env" -}}
{{- range $name, $value := fromJson . }}
- name: KUBEBEAST_{{ upper $name }}
  value: {{ kindIs "string" $value | ternary $value (toJson $value) | quote }}
{{- end }}
{{- end -}}

{{- define "kubebeast.envserver.volumeMounts" -}}
- name: tmp
  mountPath: /tmp
{{- with include "kubebeast.access.mount" .root }}
{{ . }}
{{- end }}
{{- with .group.extraVolumeMounts }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "kubebeast.envserver.volumes" -}}
- name: tmp
  emptyDir:
    sizeLimit: {{ .group.tmp.sizeLimit | quote }}
{{- with include "kubebeast.access.volume" (dict "root" .root "side" "envserver") }}
{{ . }}
{{- end }}
{{- with .group.extraVolumes }}
{{ toYaml . }}
{{- end }}
{{- end -}}
