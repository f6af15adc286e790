{{/* Selectors, peers and ports of the NetworkPolicies. */}}

{{/* Selects all pods that send streams to the learner: those of all groups, and the pod of `helm test`. */}}
{{- define "kubebeast.networkPolicy.envserverSelector" -}}
matchLabels:
  {{- include "kubebeast.memberLabels" (dict "root" .) | nindent 2 }}
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

{{/* Egress rules of environments: everything, or DNS and the additional rules of the values. */}}
{{- define "kubebeast.networkPolicy.environmentEgress" -}}
{{- with .Values.networkPolicy.envserver -}}
{{- if .allowEgress -}}
- {}
{{- else -}}
# DNS has no peer here: a cache on the node is not a pod, and no selector matches it. On OpenShift, the pods of DNS listen on
# 5353, and policies match the port of the pod.
- ports:
    {{- range list 53 5353 }}
    - port: {{ . }}
      protocol: UDP
    - port: {{ . }}
      protocol: TCP
    {{- end }}
{{- with .extraEgress }}
{{ toYaml . }}
{{- end }}
{{- end -}}
{{- end -}}
{{- end -}}
