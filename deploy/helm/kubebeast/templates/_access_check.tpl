{{/* Checks that the values of token and TLS are unambiguous. */}}

{{/* Fails if the token or TLS has no source, or several; renders nothing. */}}
{{- define "kubebeast.access.check" -}}
{{- with .Values.token -}}
{{- if and .enabled (eq (empty .value) (empty .existingSecret)) -}}
{{- fail "token: set exactly one of token.value and token.existingSecret" -}}
{{- end -}}
{{- end -}}
{{- with .Values.tls -}}
{{- if and .mutual (not .enabled) -}}
{{- fail "tls.mutual requires tls.enabled" -}}
{{- end -}}
{{- if .enabled -}}
{{- $pem := or .cert .key .ca -}}
{{- if ne 1 (len (compact (list .existingSecret (ternary "pem" "" (not (empty $pem))) (ternary "issued" "" (not (empty .certManager.enabled)))))) -}}
{{- fail "tls: set exactly one of tls.existingSecret, tls.cert with tls.key and tls.ca, and tls.certManager.enabled" -}}
{{- end -}}
{{- if and $pem (not (and .cert .key .ca)) -}}
{{- fail "tls: tls.cert, tls.key and tls.ca must be set together" -}}
{{- end -}}
{{- if and .certManager.enabled (not .certManager.issuerRef.name) -}}
{{- fail "tls.certManager.issuerRef.name is required" -}}
{{- end -}}
{{- if .mutual }}{{ include "kubebeast.access.checkClient" . }}{{ end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails if the env-servers' certificate has no source, or several. Argument: the values of tls. */}}
{{- define "kubebeast.access.checkClient" -}}
{{- $pem := or .client.cert .client.key -}}
{{- if and .client.existingSecret $pem -}}
{{- fail "tls.client: set only one of tls.client.existingSecret and tls.client.cert with tls.client.key" -}}
{{- end -}}
{{- if and $pem (not (and .client.cert .client.key)) -}}
{{- fail "tls.client: tls.client.cert and tls.client.key must be set together" -}}
{{- end -}}
{{- if not (or .client.existingSecret $pem .certManager.enabled) -}}
{{- fail "tls.mutual requires tls.client.existingSecret, tls.client.cert with tls.client.key, or tls.certManager.enabled" -}}
{{- end -}}
{{- end -}}
