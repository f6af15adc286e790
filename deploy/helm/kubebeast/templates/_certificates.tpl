{{/* Certificates of cert-manager. */}}

{{/* Whether cert-manager issues the env-servers' certificate: "true" or nothing. */}}
{{- define "kubebeast.tls.client.isIssued" -}}
{{- $given := or .Values.tls.client.existingSecret .Values.tls.client.cert .Values.tls.client.key -}}
{{- if and .Values.tls.enabled .Values.tls.mutual .Values.tls.certManager.enabled (not $given) -}}true{{- end -}}
{{- end -}}

{{/* What all Certificates have in common: who issues them, for how long, and a new key each time. */}}
{{- define "kubebeast.certificate.issuance" -}}
issuerRef:
  {{- toYaml .Values.tls.certManager.issuerRef | nindent 2 }}
privateKey:
  rotationPolicy: Always
{{- with .Values.tls.certManager.duration }}
duration: {{ . | quote }}
{{- end }}
{{- with .Values.tls.certManager.renewBefore }}
renewBefore: {{ . | quote }}
{{- end }}
{{- end -}}
