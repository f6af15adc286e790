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
