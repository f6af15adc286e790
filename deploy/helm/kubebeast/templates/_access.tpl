{{/* Access to a training: the sources of the token and the certificates, and their way to the pods. */}}

{{/* Folder of the token and the certificates in every container. */}}
{{- define "kubebeast.access.folder" -}}/etc/kubebeast/access{{- end -}}

{{- define "kubebeast.token.secretName" -}}
{{- .Values.token.existingSecret | default (printf "%s-token" (include "kubebeast.fullname" .)) -}}
{{- end -}}

{{- define "kubebeast.tls.secretName" -}}
{{- .Values.tls.existingSecret | default (printf "%s-tls" (include "kubebeast.fullname" .)) -}}
{{- end -}}

{{- define "kubebeast.tls.client.secretName" -}}
{{- .Values.tls.client.existingSecret | default (printf "%s-tls-client" (include "kubebeast.fullname" .)) -}}
{{- end -}}

{{/*
The volume of the token and the certificates: dict "root" . "side" "learner" or "envserver". It is mounted as a whole folder
without subPath, so that the kubelet copies changes of the Secrets to running pods. Empty if token and TLS are both off.
*/}}
{{- define "kubebeast.access.volume" -}}
{{- if or .root.Values.token.enabled .root.Values.tls.enabled -}}
- name: access
  projected:
    defaultMode: 0440
    sources:
      {{- if .root.Values.token.enabled }}
      - secret:
          name: {{ include "kubebeast.token.secretName" .root | quote }}
          items:
            - key: {{ .root.Values.token.key | quote }}
              path: token
      {{- end }}
      {{- if .root.Values.tls.enabled }}
      - secret:
          name: {{ include "kubebeast.tls.secretName" .root | quote }}
          items:
            {{- if eq .side "learner" }}
            - key: tls.crt
              path: tls.crt
            - key: tls.key
              path: tls.key
            {{- end }}
            {{- if or (eq .side "envserver") .root.Values.tls.mutual (include "kubebeast.isSweep" .root) }}
            - key: ca.crt
              path: ca.crt
            {{- end }}
      {{- if and (eq .side "envserver") .root.Values.tls.mutual }}
      - secret:
          name: {{ include "kubebeast.tls.client.secretName" .root | quote }}
          items:
            - key: tls.crt
              path: tls.crt
            - key: tls.key
              path: tls.key
      {{- end }}
      {{- end }}
{{- end -}}
{{- end -}}

{{/* The mount of this volume. Argument: the root context. */}}
{{- define "kubebeast.access.mount" -}}
{{- if or .Values.token.enabled .Values.tls.enabled -}}
- name: access
  mountPath: {{ include "kubebeast.access.folder" . }}
  readOnly: true
{{- end -}}
{{- end -}}

{{/* The settings with the paths of these files, as YAML: dict "root" . "side" "learner" or "envserver". */}}
{{- define "kubebeast.access.settings" -}}
{{- $folder := include "kubebeast.access.folder" .root -}}
{{- $settings := dict -}}
{{- if .root.Values.token.enabled }}{{ $_ := set $settings "token_file" (printf "%s/token" $folder) }}{{ end -}}
{{- if .root.Values.tls.enabled -}}
{{- if or (eq .side "learner") .root.Values.tls.mutual -}}
{{- $_ := set $settings "tls_cert" (printf "%s/tls.crt" $folder) -}}
{{- $_ := set $settings "tls_key" (printf "%s/tls.key" $folder) -}}
{{- end -}}
{{- if or (eq .side "envserver") .root.Values.tls.mutual -}}
{{- $_ := set $settings "tls_ca" (printf "%s/ca.crt" $folder) -}}
{{- end -}}
{{- $serverName := .root.Values.tls.serverName -}}
{{- /* Env-servers dial pods, but the certificate is for the Service. */ -}}
{{- if include "kubebeast.isSweep" .root -}}
{{- $serverName = $serverName | default (include "kubebeast.broker.host" .root) -}}
{{- else if include "kubebeast.learner.isSeveral" .root -}}
{{- $serverName = $serverName | default (printf "%s.%s.svc" (include "kubebeast.learner.fullname" .root) .root.Release.Namespace) -}}
{{- end -}}
{{- if and (eq .side "envserver") $serverName -}}
{{- $_ := set $settings "tls_server_name" $serverName -}}
{{- end -}}
{{- end -}}
{{- with $settings }}{{ toYaml . }}{{ end -}}
{{- end -}}

{{/*
Checksum of the Secrets that the chart creates, for an annotation of pods; empty if it creates none. Existing Secrets and those
of cert-manager change independently of the chart. Running processes read their files again without a restart.
*/}}
{{- define "kubebeast.access.checksum" -}}
{{- $token := and .Values.token.enabled .Values.token.value -}}
{{- $tls := ternary (list .Values.tls.cert .Values.tls.key .Values.tls.ca .Values.tls.client) list (not (empty (and .Values.tls.enabled .Values.tls.cert))) -}}
{{- if or $token $tls }}{{ toJson (list $token $tls) | sha256sum }}{{ end -}}
{{- end -}}
