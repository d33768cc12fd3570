{{/* All that the operator may do, and why. The same in a ClusterRole and in a Role. */}}
{{- define "warmfront.operatorRules" -}}
# The services themselves are only read; what is seen of them goes to their status.
- apiGroups: [warmfront.dev]
  resources: [inferenceservices]
  verbs: [list, watch]
- apiGroups: [warmfront.dev]
  resources: [inferenceservices/status]
  verbs: [patch]
# The children. Applying needs create and patch; get finds a name that is already somebody else's. Nothing is ever deleted: delete is
# here because a cluster with OwnerReferencesPermissionEnforcement asks for it of whoever sets an owner reference.
- apiGroups: [apps]
  resources: [deployments]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [""]
  resources: [services, configmaps, serviceaccounts]
  verbs: [get, list, watch, create, patch, delete]
- apiGroups: [policy]
  resources: [poddisruptionbudgets]
  verbs: [get, list, watch, create, patch, delete]
# Replicas are written through the scale subresource only.
- apiGroups: [apps]
  resources: [deployments/scale]
  verbs: [patch]
# How many pods are warm, starting or without a node, and how long each start took.
- apiGroups: [""]
  resources: [pods]
  verbs: [list, watch]
- apiGroups: [events.k8s.io]
  resources: [events]
  verbs: [create]
{{- end }}
