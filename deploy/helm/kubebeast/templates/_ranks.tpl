{{/*
Several learners that train one model, see docs/several-learners.md: torchrun in every pod, and a rank for every GPU. Unless
stated otherwise, the argument is the root context.
*/}}

{{- define "kubebeast.learner.headlessName" -}}
{{- printf "%s-headless" (include "kubebeast.learner.fullname" .) -}}
{{- end -}}

{{/*
Name of the StatefulSet of all learners except the first. torchrun numbers pods in the order of their names, so the name of the
first one, "...-learner-0", must come before "...-peers-0".
*/}}
{{- define "kubebeast.peers.fullname" -}}
{{- printf "%s-peers" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* Number of ranks of a pod: one for each GPU, and at least one. Another trainer gets the whole pod. */}}
{{- define "kubebeast.learner.ranksPerPod" -}}
{{- empty .Values.learner.command | ternary (max 1 (int .Values.learner.gpu.count)) 1 -}}
{{- end -}}

{{/* "true" if several learners train, otherwise empty. */}}
{{- define "kubebeast.learner.isSeveral" -}}
{{- if or (gt (int .Values.learner.replicas) 1) (gt (int (include "kubebeast.learner.ranksPerPod" .)) 1) }}true{{ end -}}
{{- end -}}

{{/* Ports of a pod by name, as a JSON array: those of its first rank, and the following numbers for the other ranks. */}}
{{- define "kubebeast.learner.ports" -}}
{{- $ports := list -}}
{{- range $rank := until (int (include "kubebeast.learner.ranksPerPod" .)) -}}
{{- $suffix := ternary (printf "-%d" $rank) "" (gt $rank 0) -}}
{{- range $kind, $number := dict "grpc" 4431 "http" 9090 -}}
{{- $ports = append $ports (dict "name" (print $kind $suffix) "kind" $kind "rank" $rank "number" (add $number $rank)) -}}
{{- end -}}
{{- end -}}
{{- toJson $ports -}}
{{- end -}}

{{/*
Flags of torchrun, as a JSON array: dict "root" . "isFirst" BOOL. Pods can join and leave at any time (--nnodes). They meet in
the first pod, which stays the first rank. A pod that is not there within last_call_timeout seconds joins later.
*/}}
{{- define "kubebeast.learner.torchrun" -}}
{{- $hosts := include "kubebeast.learner.hosts" . | fromYaml -}}
{{- list
  (printf "--nnodes=%s" (gt (int .root.Values.learner.replicas) 1 | ternary "1:1000" "1"))
  (printf "--nproc-per-node=%s" (include "kubebeast.learner.ranksPerPod" .root))
  "--max-restarts=10"
  "--rdzv-backend=c10d"
  (printf "--rdzv-id=%s" (include "kubebeast.learner.fullname" .root))
  (printf "--rdzv-endpoint=%s:29400" $hosts.first)
  (printf "--rdzv-conf=is_host=%t,last_call_timeout=5" .isFirst)
  (printf "--local-addr=%s" $hosts.own)
  "-m" "kubebeast_learner" | toJson -}}
{{- end -}}

{{/*
The host of the first pod and that of the pod itself, in which Kubernetes expands variables, as YAML. The pods of a JobSet are
named after its Jobs and their index. A Job alone has one pod, which may start before its predecessor has left the Service.
*/}}
{{- define "kubebeast.learner.hosts" -}}
{{- $domain := printf "%s.%s.svc" (include "kubebeast.learner.headlessName" .root) .root.Release.Namespace -}}
{{- if include "kubebeast.learner.isJobSet" .root -}}
first: $(JOBSET_NAME)-learner-0-0.{{ $domain }}
own: $(JOBSET_NAME)-{{ ternary "learner" "peers" .isFirst }}-0-$(JOB_COMPLETION_INDEX).{{ $domain }}
{{- else if include "kubebeast.learner.isJob" .root -}}
first: localhost
own: localhost
{{- else -}}
first: {{ include "kubebeast.learner.fullname" .root }}-0.{{ $domain }}
own: $(POD_NAME).{{ $domain }}
{{- end -}}
{{- end -}}

{{/* Variables of torchrun, as a JSON array. Restarted ranks would look for those that are gone (pytorch/pytorch#135712). */}}
{{- define "kubebeast.learner.torchrunVariables" -}}
{{- $podName := dict "name" "POD_NAME" "valueFrom" (dict "fieldRef" (dict "fieldPath" "metadata.name")) -}}
{{- $jobSet := dict "fieldRef" (dict "fieldPath" "metadata.labels['jobset.sigs.k8s.io/jobset-name']") -}}
{{- $name := include "kubebeast.learner.isJobSet" . | empty | ternary $podName (dict "name" "JOBSET_NAME" "valueFrom" $jobSet) -}}
{{- list $name (dict "name" "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" "value" "1") | toJson -}}
{{- end -}}

{{/* Probes as YAML. A rank has no endpoint while torchrun gathers the others, which takes long if a node is lost. */}}
{{- define "kubebeast.learner.probes" -}}
{{- $learner := deepCopy .Values.learner -}}
{{- if and (include "kubebeast.learner.isSeveral" .) (kindIs "map" $learner.livenessProbe) -}}
{{- $failures := max 30 (int $learner.livenessProbe.failureThreshold) -}}
{{- $_ := set $learner.livenessProbe "failureThreshold" $failures -}}
{{- end -}}
{{- include "kubebeast.probes" $learner -}}
{{- end -}}

{{/* Fails if several learners are combined with a value that supports only one; renders nothing. */}}
{{- define "kubebeast.ranks.check" -}}
{{- if include "kubebeast.learner.isSeveral" . -}}
{{- with .Values.learner -}}
{{- $several := gt (int .replicas) 1 | ternary (printf "learner.replicas is %v" .replicas) (printf "learner.gpu.count is %v" .gpu.count) -}}
{{- if .command -}}
{{- fail (printf "learner.replicas is %v, but learner.command is another trainer: its pods would not know about each other" .replicas) -}}
{{- end -}}
{{- if not .enabled -}}
{{- fail (printf "%s, but learner.enabled is false: this release has no learner" $several) -}}
{{- end -}}
{{- if $.Values.demo.enabled -}}
{{- fail (printf "demo.enabled supports only one learner, but %s" $several) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
