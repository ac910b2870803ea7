"""What the manifests under k8s/ must be: rules over rendered objects and kustomize sources; no IO."""
