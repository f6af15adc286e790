{{/*
Several learners that train one model, docs/several-learners.md: torchrun in every pod, a rank for every GPU. Arguments are the
root context where nothing else is said.
*/}}

{{- define "kubebeast.learner.headlessName" -}}
{{- printf "%s-headless" (include "kubebeast.learner.fullname" .) -}}
{{- end -}}

{{/*
Name of the StatefulSet of all learners but the first. torchrun numbers pods in the order of their names: that of the first
one, "...-learner-0", must come before "...-peers-0".
*/}}
{{- define "kubebeast.peers.fullname" -}}
{{- printf "%s-peers" (include "kubebeast.fullname" .) -}}
{{- end -}}

{{/* Ranks of a pod: GPUs, or one. Another trainer has the whole pod. */}}
{{- define "kubebeast.learner.ranksPerPod" -}}
{{- empty .Values.learner.command | ternary (max 1 (int .Values.learner.gpu.count)) 1 -}}
{{- end -}}

{{/* Whether several learners train: "true" or nothing. */}}
{{- define "kubebeast.learner.isSeveral" -}}
{{- if or (gt (int .Values.learner.replicas) 1) (gt (int (include "kubebeast.learner.ranksPerPod" .)) 1) }}true{{ end -}}
{{- end -}}

{{/* Ports of a pod by name, as a JSON array: those of its first rank, and of the others counted up. */}}
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
Flags of torchrun, as a JSON array: dict "root" . "isFirst" BOOL. Pods join and leave at any time (--nnodes), and wait for
each other in the first one, which stays the first rank. Whoever is not there within last_call_timeout seconds joins later.
*/}}
{{- define "kubebeast.learner.torchrun" -}}
{{- $domain := printf "%s.%s.svc" (include "kubebeast.learner.headlessName" .root) .root.Release.Namespace -}}
{{- list
  (printf "--nnodes=%s" (gt (int .root.Values.learner.replicas) 1 | ternary "1:1000" "1"))
  (printf "--nproc-per-node=%s" (include "kubebeast.learner.ranksPerPod" .root))
  "--max-restarts=10"
  "--rdzv-backend=c10d"
  (printf "--rdzv-id=%s" (include "kubebeast.learner.fullname" .root))
  (printf "--rdzv-endpoint=%s-0.%s:29400" (include "kubebeast.learner.fullname" .root) $domain)
  (printf "--rdzv-conf=is_host=%t,last_call_timeout=5" .isFirst)
  (printf "--local-addr=$(POD_NAME).%s" $domain)
  "-m" "kubebeast_learner" | toJson -}}
{{- end -}}

{{/* Variables of torchrun, as a JSON array. Restarted ranks would look for those that are gone (pytorch/pytorch#135712). */}}
{{- define "kubebeast.learner.torchrunVariables" -}}
{{- $podName := dict "fieldRef" (dict "fieldPath" "metadata.name") -}}
{{- list
  (dict "name" "POD_NAME" "valueFrom" $podName)
  (dict "name" "TORCH_DISABLE_SHARE_RDZV_TCP_STORE" "value" "1") | toJson -}}
{{- end -}}

{{/* Probes as YAML. A rank has no endpoint while torchrun gathers the others, which takes long where a node is lost. */}}
{{- define "kubebeast.learner.probes" -}}
{{- $learner := deepCopy .Values.learner -}}
{{- if and (include "kubebeast.learner.isSeveral" .) (kindIs "map" $learner.livenessProbe) -}}
{{- $failures := max 30 (int $learner.livenessProbe.failureThreshold) -}}
{{- $_ := set $learner.livenessProbe "failureThreshold" $failures -}}
{{- end -}}
{{- include "kubebeast.probes" $learner -}}
{{- end -}}

{{/* Fails where several learners go together with what knows only one; renders nothing. */}}
{{- define "kubebeast.ranks.check" -}}
{{- if include "kubebeast.learner.isSeveral" . -}}
{{- with .Values.learner -}}
{{- if .command -}}
{{- fail (printf "learner.replicas is %v, and learner.command is another trainer: its pods would not know of each other" .replicas) -}}
{{- end -}}
{{- if not .enabled -}}
{{- fail (printf "learner.replicas is %v, and learner.enabled is false: the learners elsewhere are not of this release" .replicas) -}}
{{- end -}}
{{- if $.Values.demo.enabled -}}
{{- fail (printf "demo.enabled shows one learner, and learner.replicas is %v" .replicas) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
