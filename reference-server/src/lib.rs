//! A small, real API server in memory that follows the Kubernetes API conventions.
