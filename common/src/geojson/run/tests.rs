use super::*;
use proptest::prelude::*;

/// Lines with how many brackets close behind each, and where the run ended.
type Read = (Vec<(Vec<[u64; 2]>, Option<u8>)>, End);

fn read_by(run: &mut Run, text: &str, at: usize) -> Read {
    let end = run.read(text.as_bytes(), at, MOST_BRACKETS);
    (
        run.lines()
            .map(|(line, brackets)| (line.iter().map(|position| position.map(f64::to_bits)).collect(), brackets))
            .collect(),
        end,
    )
}

/// Reads a run without vectors and, where the CPU has them, with vectors.
fn both(text: &str, at: usize) -> [Read; 2] {
    let mut portable = Run::new();
    #[cfg(target_arch = "x86_64")]
    {
        portable.wide = None;
    }
    [read_by(&mut portable, text, at), read_by(&mut Run::new(), text, at)]
}

fn count(read: &Read) -> usize {
    read.0.iter().map(|(line, _)| line.len()).sum()
}

/// The positions of the run as the grammar's own numbers have them.
fn one_by_one(text: &str) -> Vec<[u64; 2]> {
    let value: Vec<Vec<f64>> = serde_json::from_str(&format!("[{text}]")).unwrap();
    value.iter().map(|position| [position[0].to_bits(), position[1].to_bits()]).collect()
}

/// Text around a run, so that vectors can be loaded there.
fn framed(run: &str) -> String {
    format!("{{\"coordinates\":[{run}]{}", " ".repeat(100))
}

const AT: usize = 16;

#[test]
fn plain_positions_are_read_with_and_without_spaces() {
    for run in
        ["[1,2]", "[1.5,-2.25],[-0.5,0]", "[179.9999999999999,89],[0,0.0],[-120.65487365123505,48.5]", "[1.5, 2.5], [3, 4]"]
    {
        for read in both(&framed(run), AT) {
            assert_eq!(read, (vec![(one_by_one(run), None)], End::AfterPosition(AT + run.len())), "{run}");
        }
    }
}

#[test]
fn a_run_goes_on_from_line_to_line() {
    for text in ["[1,2],[3,4]],[[5,-6]]],[[[-7.5,8],[9,10]]]]}", "[1, 2], [3, 4]], [[5, -6]]], [[[-7.5, 8], [9, 10]]]]}"] {
        for (lines, end) in both(&framed(text), AT) {
            let wanted = [("[1,2],[3,4]", Some(2)), ("[5,-6]", Some(3)), ("[-7.5,8],[9,10]", None)];
            assert_eq!(lines, wanted.map(|(line, brackets)| (one_by_one(line), brackets)), "{text}");
            assert_eq!(end, End::AfterPosition(AT + text.len() - "]]]}".len()), "{text}");
        }
        let mut run = Run::new();
        assert_eq!(run.read(framed(text).as_bytes(), AT, 1), End::AfterPosition(AT + text.find("]]").unwrap() + 1), "{text}");
    }
}

#[test]
fn what_is_not_plain_is_left_where_it_begins() {
    let bad = [
        "[1,2,3]",
        "[01,2]",
        "[1,-]",
        "[1.,2]",
        "[.5,2]",
        "[1,2.]",
        "[1 ,2]",
        "[1,2 ]",
        "[ 1,2]",
        "[1]",
        "[]",
        "[180,2]",
        "[1,90]",
        "[1,-90.0]",
        "[--1,2]",
        "[1-,2]",
        "[1,00]",
        "[1.2.3,4]",
        "[1,\"2\"]",
        "[1000,2]",
        "[1,1000]",
        "[+1,2]",
        "[1,2}",
        "[1  ,2]",
        "[1,,2]",
        "[-,1]",
        "[1/2,3]",
        "[/1,3]",
        "[1.5/,3]",
        "[1.-5,3]",
        "[-00.5,3]",
        "[1,2.5-]",
        "[1,2.5.]",
    ];
    for bad in bad {
        for read in both(&framed(&format!("[3,4],{bad}")), AT) {
            let wanted = match bad.as_bytes()[1] {
                // What follows is told when it is read on.
                b'0'..=b'9' | b'-' | b'.' | b'/' => End::BeforePosition(AT + 6),
                _ => End::AfterPosition(AT + 5),
            };
            assert_eq!(count(&read), 1, "{bad}");
            assert!(read.1 == wanted || read.1 == End::AfterPosition(AT + 5), "{bad}: {read:?}");
        }
        let [portable, wide] = both(&framed(bad), AT);
        assert_eq!((count(&portable), count(&wide)), (0, 0), "{bad}");
    }
}

#[test]
fn a_run_ends_where_its_room_does() {
    let run = vec!["[1.5,2.5]"; 100].join(",");
    for read in both(&framed(&run), AT) {
        assert_eq!((count(&read), read.1), (MOST, End::BeforePosition(AT + 10 * MOST)));
    }
}

/// Something that is nearly a number.
fn number(limit: i32) -> impl Strategy<Value = String> {
    let whole = prop_oneof![4 => (-limit..limit).prop_map(|n| n.to_string()), 1 => "-?[0-9]{0,4}"];
    let fraction = prop_oneof![3 => "\\.[0-9]{1,17}", 2 => Just(String::new()), 1 => "\\.[0-9]{0,20}([eE][+-]?[0-9]{0,2})?"];
    (whole, fraction).prop_map(|(whole, fraction)| whole + &fraction)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4_000))]
    #[test]
    fn both_read_the_same_of_any_text(
        positions in proptest::collection::vec((number(180), number(90)), 1..70),
        separators in prop_oneof![6 => Just([",", ","]), 3 => Just([", ", ", "]), 1 => Just([" ,", ",\n"])],
        brackets in proptest::collection::vec(prop_oneof![6 => 1_usize..2, 3 => 2_usize..5], 70),
        tail in "[ \\],}0-9.eE-]{0,120}",
    ) {
        let [inner, outer] = separators;
        let position = |((x, y), brackets): (&(String, String), &usize)| {
            let (closing, opening) = ("]".repeat(*brackets), "[".repeat(*brackets));
            format!("{x}{inner}{y}{closing}{outer}{opening}")
        };
        let run: String = positions.iter().zip(&brackets).map(position).collect();
        let text = format!("{{\"coordinates\":[[{run}{tail}");
        let [portable, wide] = both(&text, AT);
        // A run of vectors ends sooner where the text does, or at a number that it leaves to the grammar.
        prop_assert!(count(&wide) <= count(&portable));
        let flat = |read: &Read| -> Vec<[u64; 2]> { read.0.iter().flat_map(|(line, _)| line.clone()).collect() };
        prop_assert_eq!(&flat(&wide)[..], &flat(&portable)[..count(&wide)]);
        for (of_wide, of_portable) in wide.0.iter().zip(&portable.0).take(wide.0.len().saturating_sub(1)) {
            prop_assert_eq!(of_wide, of_portable);
        }
        if let (true, End::AfterPosition(at), End::AfterPosition(of_portable)) = (count(&wide) == count(&portable), wide.1, portable.1) {
            prop_assert_eq!(at, of_portable);
        }
    }

    #[test]
    fn any_bytes_are_read_without_harm(bytes in proptest::collection::vec(prop_oneof![Just(b'['), Just(b','), Just(b'.'), Just(b'-'), Just(b'1'), any::<u8>()], 0..400), at in 0_usize..400) {
        let at = at.min(bytes.len());
        let mut run = Run::new();
        run.read(&bytes, at, MOST_BRACKETS);
        prop_assert!(run.lines().flat_map(|(line, _)| line).flatten().all(|ordinate| ordinate.is_finite()));
    }
}
