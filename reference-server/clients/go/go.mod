module github.com/kubeproof/kubeproof/reference-server/clients/go

go 1.20
