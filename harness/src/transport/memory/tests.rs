use super::*;

impl MemoryBudget {
    /// Returns the free bytes.
    pub(in crate::transport) fn free(&self) -> usize {
        self.pool.total - self.pool.level().held
    }
}

#[tokio::test]
async fn what_fits_is_let_in_before_what_has_waited_longer() {
    let budget = MemoryBudget::new(1 << 20, 1 << 20);
    let held = budget.hold(1 << 19, 0).await.expect("half of it");
    let large = budget.hold(1 << 20, 0);
    tokio::pin!(large);
    assert!(futures_util::poll!(&mut large).is_pending());
    let small = budget.hold(1 << 18, 0).await.expect("it fits");
    drop(held);
    assert!(futures_util::poll!(&mut large).is_pending());
    drop(small);
    large.await.expect("all is free");
}

fn grown(budget: &MemoryBudget) -> GrowingReservation {
    GrowingReservation::new(budget, budget.pool.total)
}

#[tokio::test]
async fn when_all_reservations_wait_for_each_other_the_last_one_exceeds_the_limit() {
    let budget = MemoryBudget::new(4 << 20, 4 << 20);
    let finished = budget.hold(1 << 20, 0).await.expect("there is room");
    let (mut first, mut second) = (grown(&budget), grown(&budget));
    first.add(1 << 20).await.expect("there is room");
    second.add(1 << 20).await.expect("there is room");
    let mut waiting = Box::pin(first.add(2 << 20));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    assert!(
        futures_util::poll!(Box::pin(second.add(2 << 20))).is_pending(),
        "the finished response will be released"
    );
    second.add(1 << 20).await.expect("it fits");
    drop(finished);
    assert!(futures_util::poll!(&mut waiting).is_pending(), "it waits again");
    second.add(2 << 20).await.expect("the only other reservation waits");
    assert_eq!(budget.pool.level().held, 5 << 20);
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(second);
    waiting.await.expect("only its own memory is in use");
    drop(first);
    assert_eq!(budget.free(), 4 << 20);
    assert_eq!(budget.pool.level().parked, 0);
}

#[tokio::test]
async fn a_reservation_that_would_exceed_twice_the_limit_fails() {
    let budget = MemoryBudget::new(8 << 20, 8 << 20);
    let (mut first, mut second, mut third) = (grown(&budget), grown(&budget), grown(&budget));
    first.add(2 << 20).await.expect("there is room");
    second.add(2 << 20).await.expect("there is room");
    third.add(4 << 20).await.expect("there is room");
    let (mut first, mut second) = (Box::pin(first.add(6 << 20)), Box::pin(second.add(6 << 20)));
    assert!(futures_util::poll!(&mut first).is_pending());
    assert!(futures_util::poll!(&mut second).is_pending());
    third.add(3 << 20).await.expect("all others wait");
    assert!(futures_util::poll!(&mut second).is_pending());
    let mut third = Box::pin(third.add(1 << 20));
    assert!(futures_util::poll!(&mut third).is_pending(), "the first will try again");
    first.await.expect_err("2 + 2 + 7 of 8 MiB are in use, and it needs 6 more");
}

#[tokio::test]
async fn who_has_just_been_reported_of_room_counts_as_one_who_will_give_some_back() {
    let budget = MemoryBudget::new(4 << 20, 4 << 20);
    let finished = budget.hold(2 << 20, 0).await.expect("there is room");
    let mut first = GrowingReservation::new(&budget, 4 << 20);
    first.add(1 << 20).await.expect("there is room");
    let mut waiting = Box::pin(first.add(2 << 20));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(finished);
    let mut newcomer = Box::pin(budget.hold(4 << 20, 0));
    assert!(futures_util::poll!(&mut newcomer).is_pending(), "the first has not looked yet");
    waiting.await.expect("it fits");
    drop(first);
    newcomer.await.expect("all is free");
}

#[tokio::test]
async fn of_those_that_take_turns_one_becomes_long() {
    let budget = MemoryBudget::new(4 << 20, 4 << 20);
    let mut first = GrowingReservation::in_turn(&budget, 4 << 20);
    first.reach(1 << 20).await.expect("there is room");
    let mut second = GrowingReservation::in_turn(&budget, 4 << 20);
    second.reach(LONG).await.expect("so much is had without a turn");
    let mut waiting = Box::pin(second.reach(LONG + 1));
    assert!(futures_util::poll!(&mut waiting).is_pending());
    first.reach(2 << 20).await.expect("the other waits for its turn");
    assert!(futures_util::poll!(&mut waiting).is_pending());
    drop(first);
    waiting.await.expect("it is its turn");
}

#[tokio::test]
async fn after_a_standstill_one_reservation_exceeds_the_limit() {
    let mut budget = MemoryBudget::new(1 << 20, 1 << 20);
    let standstill = Duration::from_millis(1);
    Arc::get_mut(&mut budget.pool).expect("the only owner").standstill = standstill;
    let _kept = budget.hold(3 << 18, 0).await.expect("there is room");
    let first = budget.hold(1 << 19, 0).await.expect("nothing is released meanwhile");
    let mut third = Box::pin(budget.hold(1 << 20, 0));
    let waited = timeout(10 * standstill, &mut third).await;
    waited.expect_err("with it, the limit would be exceeded twice");
    drop(first);
    third.await.expect("the standstill goes on");
}

#[tokio::test]
async fn half_of_the_memory_becomes_free_when_buffers_go() {
    let budget = MemoryBudget::new(1 << 20, 1 << 20);
    let mut growth = GrowingReservation::new(&budget, 1 << 20);
    growth.add(3 << 18).await.expect("there is room");
    let mut waiting = Box::pin(budget.half_free());
    assert!(futures_util::poll!(&mut waiting).is_pending());
    let _held = growth.into_held(1 << 19);
    waiting.await;
    assert_eq!(budget.free(), 1 << 19);
}

#[tokio::test]
async fn nobody_waits_for_more_than_there_is() {
    let budget = MemoryBudget::new(1 << 20, 1 << 20);
    let _other = budget.hold(1 << 10, 0).await.expect("there is room");
    let mut growth = GrowingReservation::new(&budget, 1 << 20);
    growth.add(1 << 19).await.expect("there is room");
    growth.add((1 << 19) + 1).await.expect_err("it has half of it itself");
}
