//! What `kubeproof stress` and `kubeproof explore` share: a correct server, and the cleanup.

use rstest::rstest;
use serde_json::json;

use crate::program::kubeproof;
use crate::server::TestServer;

const STRESS: [&str; 5] = ["stress", "--duration", "2s", "--clients", "4"];
const EXPLORE: [&str; 5] = ["explore", "--max-requests", "400", "--seed", "7"];

#[rstest]
#[case::stress(STRESS, "stress of http://127.0.0.1:", "")]
#[case::explore(EXPLORE, "exploration of http://127.0.0.1:", " 400 requests")]
fn a_correct_server_has_no_violation_and_is_left_clean(
    #[case] short: [&str; 5],
    #[case] first: &str,
    #[case] part: &str,
) {
    let server = TestServer::start(&[]);
    let run = kubeproof(&[&short[..], &server.target()].concat()).with(0);
    assert!(run.stdout.starts_with(first), "{}", run.stdout);
    assert!(run.stdout.contains(part), "{}", run.stdout);
    assert!(run.stdout.contains("no violation"), "{}", run.stdout);
    server.assert_clean();
}

#[rstest]
#[case::stress(STRESS)]
#[case::explore(EXPLORE)]
fn objects_of_others_in_the_namespace_stay(#[case] short: [&str; 5]) {
    let server = TestServer::start(&[]);
    let collection = "/api/v1/namespaces/default/configmaps";
    server.create(collection, &json!({"metadata": {"name": "mine"}}));
    let only = ["--namespace", "default", "--subject", "v1/configmaps"];
    kubeproof(&[&short[..], &only, &server.target()].concat()).with(0);
    assert_eq!(server.names(collection), ["mine"]);
}
