-- Health of warmfront.dev/InferenceService for Argo CD: the ConfigMap argocd-cm,
-- key resource.customizations.health.warmfront.dev_InferenceService.
-- Scaling never changes it: Ready says that the spec is observed, its rollout is through and a pod is warm.

local function condition(kind)
  for _, candidate in ipairs((obj.status or {}).conditions or {}) do
    if candidate.type == kind then
      return candidate
    end
  end
  return nil
end

local function health(status, source, fallback)
  local message = fallback
  if source ~= nil and source.message ~= nil and source.message ~= "" then
    message = source.message
  end
  return { status = status, message = message }
end

local observed = (obj.status or {}).observedGeneration or -1
if observed < ((obj.metadata or {}).generation or 0) then
  return health("Progressing", nil, "The Warmfront operator has not seen this spec yet.")
end

local stalled = condition("Stalled")
if stalled ~= nil and stalled.status == "True" then
  return health("Degraded", stalled, "Stalled.")
end

local ready = condition("Ready")
if ready ~= nil and ready.status == "True" then
  return health("Healthy", ready, "Ready.")
end

local reconciling = condition("Reconciling")
if reconciling ~= nil and reconciling.status == "True" then
  return health("Progressing", reconciling, "Reconciling.")
end
if ready ~= nil and ready.status == "False" then
  return health("Degraded", ready, "Not ready.")
end
return health("Progressing", ready, "Waiting for the Warmfront operator.")
