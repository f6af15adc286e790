{{/* Objects that `demo.enabled` adds to learner and env-servers. */}}

{{/* Name of the objects of Prometheus and Grafana. */}}
{{- define "kubebeast.demo.fullname" -}}
{{- printf "%s-grafana" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* Fails if other values contradict the demo; renders nothing. */}}
{{- define "kubebeast.demo.check" -}}
{{- if .Values.demo.enabled -}}
{{- if .Values.envservers -}}
{{- fail "demo.enabled trains Catch, but envservers contains groups of your own: remove one of the two, or change demo.envserver" -}}
{{- end -}}
{{- if not .Values.learner.enabled }}{{ fail "demo.enabled trains in this release, but learner.enabled is false" }}{{ end -}}
{{- if .Values.learner.gpu.count }}{{ fail "demo.enabled trains on CPUs, but learner.gpu.count reserves a GPU" }}{{ end -}}
{{- end -}}
{{- end -}}

{{/* Files of Prometheus and Grafana, as YAML of a map. */}}
{{- define "kubebeast.demo.files" -}}
prometheus.yaml: |
  {{- include "kubebeast.demo.prometheus" . | nindent 2 }}
rules.yaml: |
  {{- include "kubebeast.ruleGroups" . | nindent 2 }}
datasources.yaml: |
  apiVersion: 1
  datasources:
    - name: Prometheus
      type: prometheus
      access: proxy
      url: http://127.0.0.1:9090
      isDefault: true
      # The scrape_interval of Prometheus: $__rate_interval is at least four times as long.
      jsonData: {timeInterval: 5s}
dashboards.yaml: |
  apiVersion: 1
  providers:
    - name: kubebeast
      type: file
      options: {path: /etc/kubebeast}
kubebeast.json: {{ include "kubebeast.dashboard" . | toJson }}
{{- end -}}

{{/* Configuration of Prometheus. It sets the same labels as ServiceMonitor and PodMonitor, as rules and panels expect. */}}
{{- define "kubebeast.demo.prometheus" -}}
{{- $learner := include "kubebeast.learner.fullname" . -}}
{{- $release := list (dict "target_label" "job" "replacement" (include "kubebeast.fullname" .)) (dict "target_label" "namespace" "replacement" .Release.Namespace) | toJson -}}
global: {scrape_interval: 5s, scrape_timeout: 5s, evaluation_interval: 5s}
rule_files: [rules.yaml]
scrape_configs:
  - job_name: learner
    static_configs:
      - targets: ["{{ $learner }}:{{ .Values.learner.service.httpPort | int }}"]
        labels: {service: {{ $learner }}, pod: {{ $learner }}-0}
    relabel_configs: {{ $release }}
  - job_name: env-servers
    # The Service has one IP family, and DNS returns an address of this family for every ready pod.
    dns_sd_configs:
      {{- range list "A" "AAAA" }}
      - {names: ["{{ include "kubebeast.fullname" $ }}-envservers"], type: {{ . }}, port: 9091, refresh_interval: 5s}
      {{- end }}
    relabel_configs:
      {{- range fromJsonArray $release }}
      - {{ toJson . }}
      {{- end }}
      - {target_label: kubebeast_group, replacement: envserver}
      - {source_labels: [__address__], target_label: pod}
{{- end -}}
