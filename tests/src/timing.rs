//! What benchmarks measure with.

/// Returns what `work` returns, and how long it took, in seconds.
pub fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let started = std::time::Instant::now();
    let done = std::hint::black_box(work());
    (done, started.elapsed().as_secs_f64())
}

/// Returns the median of seconds, of which there must be some.
pub fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}
