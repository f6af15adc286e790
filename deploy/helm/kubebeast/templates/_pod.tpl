{{/* Common parts of the pods of learner, env-servers, evaluator, demo and test. */}}

{{/*
Fields of a pod spec: dict "root" . "pod" the values of the pod, "serviceAccountName" NAME, "selector" its labels as YAML.
There are no service links: a Service named kubebeast would set KUBEBEAST_PORT, and such variables are settings.
*/}}
{{- define "kubebeast.podSpec" -}}
automountServiceAccountToken: false
enableServiceLinks: false
serviceAccountName: {{ .serviceAccountName | quote }}
{{- with include "kubebeast.imagePullSecrets" .root }}
imagePullSecrets:
  {{- . | nindent 2 }}
{{- end }}
{{- with .pod.priorityClassName }}
priorityClassName: {{ . | quote }}
{{- end }}
{{- with .pod.runtimeClassName }}
runtimeClassName: {{ . | quote }}
{{- end }}
{{- with .pod.schedulerName }}
schedulerName: {{ . | quote }}
{{- end }}
terminationGracePeriodSeconds: {{ .pod.terminationGracePeriodSeconds | int }}
securityContext:
  {{- toYaml .pod.podSecurityContext | nindent 2 }}
{{- range $field := list "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" }}
{{- with include (printf "kubebeast.%s" $field) $ }}
{{ $field }}:
  {{- . | nindent 2 }}
{{- end }}
{{- end }}
{{- with .pod.initContainers }}
initContainers:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* Source of the volume with the credentials of a pod's account for the API server, as YAML. */}}
{{- define "kubebeast.account" -}}
projected:
  sources:
    - serviceAccountToken:
        path: token
        expirationSeconds: 3600
    - configMap:
        name: kube-root-ca.crt
        items:
          - key: ca.crt
            path: ca.crt
    - downwardAPI:
        items:
          - path: namespace
            fieldRef:
              fieldPath: metadata.namespace
{{- end -}}

{{/* Secrets for pulling images, as YAML: those of the parent's `global`, which are objects or names, and the chart's own. */}}
{{- define "kubebeast.imagePullSecrets" -}}
{{- $shared := list -}}
{{- range (.Values.global | default dict).imagePullSecrets -}}
{{- $shared = append $shared (kindIs "string" . | ternary (dict "name" .) .) -}}
{{- end -}}
{{- include "kubebeast.extended" (dict "own" $shared "added" .Values.imagePullSecrets "key" "name") -}}
{{- end -}}

{{/* Fields of a container: dict "root" . "container" its values. */}}
{{- define "kubebeast.container" -}}
image: {{ include "kubebeast.image" (dict "root" .root "image" .container.image) | quote }}
imagePullPolicy: {{ .root.Values.image.pullPolicy }}
securityContext:
  {{- toYaml .container.securityContext | nindent 2 }}
{{- with .container.extraEnvFrom }}
envFrom:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{/* The probes of a container that are not null. A probe without a handler requests the container's HTTP port. */}}
{{- define "kubebeast.probes" -}}
{{- $probes := dict -}}
{{- range $name, $path := dict "startupProbe" "/healthz" "livenessProbe" "/healthz" "readinessProbe" "/readyz" -}}
{{- $probe := get $ $name -}}
{{- if kindIs "map" $probe -}}
{{- if not (or $probe.exec $probe.grpc $probe.tcpSocket) -}}
{{- $probe = merge $probe (dict "httpGet" (dict "path" $path "port" "http")) -}}
{{- end -}}
{{- $_ := set $probes $name $probe -}}
{{- end -}}
{{- end -}}
{{- with $probes }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
API version of PodDisruptionBudget: policy/v1 exists since Kubernetes 1.21. It depends on the version of Kubernetes, because
`helm template` assumes that the cluster has every API that Helm knows.
*/}}
{{- define "kubebeast.podDisruptionBudget.apiVersion" -}}
{{- semverCompare ">=1.21.0-0" .Capabilities.KubeVersion.Version | ternary "policy/v1" "policy/v1beta1" -}}
{{- end -}}

{{/* The bound of a disruption budget, as YAML: dict "budget" its values, "default" the bound if they contain none. */}}
{{- define "kubebeast.podDisruptionBudget.bound" -}}
{{- $bound := dict -}}
{{- range $name, $value := omit .budget "enabled" -}}
{{- if not (kindIs "invalid" $value) }}{{ $_ := set $bound $name $value }}{{ end -}}
{{- end -}}
{{- $bound | default .default | toYaml -}}
{{- end -}}
