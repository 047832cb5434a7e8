//! `kubeproof self-test`.

use crate::program::kubeproof;

#[test]
fn the_matrix_lists_each_fault_with_its_requirements_and_cases() {
    let matrix = kubeproof(&["self-test", "faults", "--matrix"]).with(0).stdout;
    for heading in ["## By fault", "## By requirement", "## By case"] {
        assert!(matrix.contains(heading), "{heading:?} is not in\n{matrix}");
    }
    let faults = kubeproof(&["serve", "--list-faults"]).with(0).stdout;
    for fault in faults.lines().skip(1).filter_map(|line| line.split(' ').next()) {
        let row = matrix.lines().find(|line| line.starts_with(&format!("| `{fault}` |")));
        let cells: Vec<&str> = row.expect("a row for each fault").split(" | ").collect();
        assert!(cells.len() == 4 && cells[2].contains('`'), "{cells:?} has no requirement");
        assert!(cells[3].contains('/'), "{cells:?} has no case");
    }
}

#[test]
fn one_fault_is_tested_by_the_cases_that_list_it() {
    let finished = kubeproof(&["self-test", "faults", "--fault", "put-creates"]).with(0);
    assert!(finished.stdout.starts_with("put-creates  put/"), "{}", finished.stdout);
    assert!(finished.stdout.contains("1 fault, caught by"), "{}", finished.stdout);
    let unknown = kubeproof(&["self-test", "capabilities", "--capability", "pagin"]).with(2);
    assert!(unknown.stderr.contains("; expected "), "{}", unknown.stderr);
    assert!(unknown.stderr.contains(", paging, "), "{}", unknown.stderr);
    let unknown = kubeproof(&["self-test", "modes", "--mode", "nope"]).with(2);
    let expected = "no mode has the name \"nope\"; expected namespace-default, no-rights, \
                    one-namespace, read-only";
    assert!(unknown.stderr.contains(expected), "{}", unknown.stderr);
}
