{{/* Who is who in the NetworkPolicies. */}}

{{/* Selects everything that plays streams to the learner: all groups, and the pod of `helm test`. */}}
{{- define "kubebeast.networkPolicy.envserverSelector" -}}
matchLabels:
  {{- include "kubebeast.selectorLabels" (dict "root" .) | nindent 2 }}
matchExpressions:
  - key: app.kubernetes.io/component
    operator: In
    values: [envserver, envserver-test]
{{- end -}}

{{/* Peers that may scrape. Argument: the values of one side's policy. */}}
{{- define "kubebeast.networkPolicy.metricsPeers" -}}
{{- with .metricsFrom }}{{ toYaml . }}{{ else }}- namespaceSelector: {}{{ end -}}
{{- end -}}

{{/* Ports of a learner's pod as YAML: dict "root" . "kind" "grpc" or "http". */}}
{{- define "kubebeast.networkPolicy.learnerPorts" -}}
{{- $ports := list -}}
{{- $kind := .kind -}}
{{- range include "kubebeast.learner.ports" .root | fromJsonArray -}}
{{- if eq .kind $kind }}{{ $ports = append $ports (dict "port" .number "protocol" "TCP") }}{{ end -}}
{{- end -}}
{{- toYaml $ports -}}
{{- end -}}

{{/* Where environments may connect: everywhere, or to DNS and what the values add. */}}
{{- define "kubebeast.networkPolicy.environmentEgress" -}}
{{- with .Values.networkPolicy.envserver -}}
{{- if .allowEgress -}}
- {}
{{- else -}}
# DNS, without a peer: a cache on the node is no pod, and no selector finds it.
- ports:
    - port: 53
      protocol: UDP
    - port: 53
      protocol: TCP
{{- with .extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
