# Runs a command of kubectl through `kubectl proxy`.
kubectl proxy --port=0 > proxy.log &
trap 'kill $!' EXIT
until grep -q "Starting to serve on" proxy.log; do sleep 0.1; done
"$@" --server "http://$(sed 's/.* //' proxy.log)"
