//! Measures and prints; asserts nothing. `cargo bench -p geoclaim-tests --bench throughput [-- extents discard memory]`
//!
//! Rates stand beside their limit in the same run, alternated, as medians: two cores that others share are noisy, and
//! only the ratio says something.

mod discard;
mod extents;
mod memory;

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with("--")).collect();
    for (name, print) in [("extents", extents::print as fn()), ("discard", discard::print), ("memory", memory::print)] {
        if wanted.is_empty() || wanted.iter().any(|wanted| wanted == name) {
            print();
        }
    }
}

/// Returns the median of seconds.
fn median(mut seconds: Vec<f64>) -> f64 {
    seconds.sort_by(f64::total_cmp);
    seconds[seconds.len() / 2]
}

/// Returns how long `work` takes, in seconds.
fn timed<T>(work: impl FnOnce() -> T) -> f64 {
    let started = std::time::Instant::now();
    std::hint::black_box(work());
    started.elapsed().as_secs_f64()
}
