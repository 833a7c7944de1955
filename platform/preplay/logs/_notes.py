"""What was accepted with a remark, said in plain words."""

from collections.abc import Mapping

_TEXTS = {
    "duplicate_turns": "{n} turns were logged more than once with equal content and merged.",
    "split_by_policy": "{n} session ids were used by several policies; they became one session per policy.",
    "split_by_file": "{n} session ids were used in several files for different sessions; they became one per file.",
    "turn_ids_missing": "{n} sessions have no turn numbers; their turns are in order of time or of arrival.",
    "unsorted_sessions": "{n} sessions were not logged in the order of their turns; they were sorted.",
    "cut_sessions": "{n} sessions are cut at a missing or quarantined turn; what followed it is quarantined.",
    "turns_after_end": "{n} turns stand after the end of their session and are quarantined.",
    "sessions_of_whole_histories": "{n} sessions log the whole history as state; only the new part was kept.",
    "next_state_filled": "{n} missing next states were taken from the following turn.",
    "sessions_without_reward": "{n} sessions have no reward (0 was put in): join the outcomes (--outcomes FILE).",
    "outcomes_joined": "{n} sessions got their reward from a record beside their turns.",
    "rewarded_at_end_only": "{n} sessions have a reward on their last turn only; the others count 0.",
    "end_assumed": "{n} sessions carry no end flag; their last turn counts as terminated.",
    "open_end": "{n} sessions stop without their end flag set; they count as truncated.",
    "end_not_logged": '{n} sessions do not say what followed the last action; next_observation is "".',
    "both_flags": "{n} turns are flagged terminated and truncated; they count as terminated.",
    "half_characters": "{n} texts held half a character (cut by an exporter); it was replaced by '?'.",
    "reward_as_text": "{n} rewards were text and were read as numbers.",
    "harness_text": "{n} observations hold text of the harness (steps left …), which tells how a session ends.",
    "cut_texts": "{n} observations look cut by an exporter.",
    "next_observation_differs": "{n} next observations are not what the following turn observed.",
    "secret_email": "{n} turns hold e-mail addresses (mask them with --redact).",
    "secret_private_key": "{n} turns hold private keys (mask them with --redact).",
    "secret_aws_key": "{n} turns hold AWS keys (mask them with --redact).",
    "secret_api_key": "{n} turns hold API keys (mask them with --redact).",
    "secret_github_token": "{n} turns hold GitHub tokens (mask them with --redact).",
    "secret_slack_token": "{n} turns hold Slack tokens (mask them with --redact).",
    "secret_jwt": "{n} turns hold JSON web tokens (mask them with --redact).",
    "secret_bearer": "{n} turns hold bearer tokens (mask them with --redact).",
    "reward_as_boolean": "{n} rewards were true or false and were read as 1 or 0.",
}


def explain(notes: Mapping[str, int], quarantined: int) -> list[str]:
    """One sentence for each remark that applies."""
    lost = [f"{quarantined} entries are in quarantine."] if quarantined else []
    return lost + [text.format(n=notes[key]) for key, text in _TEXTS.items() if notes.get(key)]
