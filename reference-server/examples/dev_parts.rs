//! dev
use kubeproof_reference_server::*;
#[tokio::main]
async fn main() {
    let faults = std::env::args().skip(1).filter_map(|n| Fault::from_name(&n)).collect();
    let server = Server::start(Config {
        admin_token: "a".into(),
        user_token: Some("u".into()),
        listen: "127.0.0.1:18081".parse().unwrap(),
        faults,
        tls: Some(Tls::default()),
        ..Config::default()
    })
    .await
    .unwrap();
    std::fs::write("/tmp/parts-kubeconfig", server.kubeconfig()).unwrap();
    println!("listening on {}", server.url());
    std::future::pending::<()>().await;
}
