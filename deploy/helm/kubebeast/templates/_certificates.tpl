{{/* Certificates that cert-manager issues. */}}

{{/* "true" if cert-manager issues the env-servers' certificate, otherwise empty. */}}
{{- define "kubebeast.tls.client.isIssued" -}}
{{- $given := or .Values.tls.client.existingSecret .Values.tls.client.cert .Values.tls.client.key -}}
{{- if and .Values.tls.enabled .Values.tls.mutual .Values.tls.certManager.enabled (not $given) -}}true{{- end -}}
{{- end -}}

{{/* Common fields of all Certificates: the issuer, the validity, and a new key for each renewal. */}}
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
