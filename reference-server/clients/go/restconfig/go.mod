module github.com/kubeproof/kubeproof/reference-server/clients/go/restconfig

go 1.26

require (
	github.com/kubeproof/kubeproof/reference-server/clients/go v0.1.0
	k8s.io/api v0.36.2
	k8s.io/apimachinery v0.36.2
	k8s.io/client-go v0.36.2
)

// A module that imports this one ignores the line.
replace github.com/kubeproof/kubeproof/reference-server/clients/go => ../
