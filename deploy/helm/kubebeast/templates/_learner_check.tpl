{{/* Checks that the values of the learner are unambiguous. */}}

{{/* Fails if they contradict each other; renders nothing. */}}
{{- define "kubebeast.learner.check" -}}
{{- with .Values.learner -}}
{{- $device := .config.device | default "cuda" -}}
{{- if and .gpu.count (not (hasPrefix "cuda" $device)) -}}
{{- fail (printf "learner.config.device is %q, but learner.gpu.count is %v: a GPU would be reserved but not used" $device .gpu.count) -}}
{{- end -}}
{{- if and .storage.existingSecret (not .storage.url) -}}
{{- fail "learner.storage.existingSecret requires learner.storage.url, the bucket that it is for" -}}
{{- end -}}
{{- if and $.Values.paused (not (include "kubebeast.learner.isJob" $)) (not .storage.url) .persistence.enabled (not .persistence.existingClaim) (eq .persistence.retention.whenScaled "Delete") -}}
{{- fail "paused: learner.persistence.retention.whenScaled is Delete, so the run would be deleted" -}}
{{- end -}}
{{- if .enabled -}}
{{- if eq (int .service.port) (int .service.httpPort) -}}
{{- fail (printf "learner.service.port and learner.service.httpPort are both %v: the ports of a Service must differ" .service.port) -}}
{{- end -}}
{{- if .address }}{{ fail "learner.address is the address of a learner outside the release: it requires learner.enabled=false" }}{{ end -}}
{{- else -}}
{{- include "kubebeast.learner.checkElsewhere" $ -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{/* Fails if a value is missing that env-servers need to reach a learner outside the release. */}}
{{- define "kubebeast.learner.checkElsewhere" -}}
{{- if not .Values.learner.address -}}
{{- fail "learner.enabled is false: learner.address must be set to the address that the env-servers dial, e.g. learner.example.com:4431" -}}
{{- end -}}
{{- if and .Values.tls.enabled (not .Values.tls.existingSecret) -}}
{{- fail "learner.enabled is false: tls.existingSecret must contain the ca.crt of that learner's certificate authority" -}}
{{- end -}}
{{- range include "kubebeast.envservers" . | fromJsonArray -}}
{{- if or (and .autoscaling.hpa.enabled (not .autoscaling.hpa.metricSelector)) (and .autoscaling.keda.enabled (not .autoscaling.keda.query)) -}}
{{- fail (printf "learner.enabled is false: the autoscaling of the group %q requires hpa.metricSelector or keda.query, which select that learner's metrics" .name) -}}
{{- end -}}
{{- end -}}
{{- end -}}
