"""Each deliberate difference from the reference that shows in a number, a count, a unit or a file is held by a test."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "differences.md"
NEVER = ("Refused, where the reference accepts and ignores", "Plugins", "Left out", "In a later version")
"""Sections of no number: refusals stand in the tables of test_load_options, names in test_reference_names."""

HELD = {
    # Time and metrics
    "arrival of a chunk": (
        "test_reduce.py::test_a_streamed_answer_becomes_a_row_of_instants_on_the_runs_clock",
        "test_reduce.py::test_reads_without_a_kernel_stamp_have_the_reads_own",
        "test_transport_quirks.py::test_every_read_of_a_stream_has_the_kernels_stamp",
        "test_verdict_measurement.py::test_the_report_says_what_stamps_are_worth_here",
    ),
    "several events in one read": (
        "test_answer.py::test_events_sent_together_share_their_instant_and_none_is_marked",
        "test_answer.py::test_all_but_the_last_event_of_merged_segments_are_marked",
        "test_reduce.py::test_what_came_in_one_read",
    ),
    "first content merged with later content": (
        "test_merged_first_content.py::test_every_line_and_the_summary_have_the_truth_between_their_bounds",
        "test_reduce.py::test_bounds_of_the_first_content_hold_for_every_possible_truth",
    ),
    "inter-token latency when the whole answer came with one stamp": (
        "test_metric_latency.py::test_tokens_at_one_instant_have_no_inter_token_latency",
        "test_metrics.py::test_one_token_has_no_time_between_tokens_and_none_is_zero",
    ),
    "time base of throughput": (
        "test_wrong_numbers.py::test_the_time_base_of_throughput_includes_failed_requests",
        "test_report.py::test_the_duration_spans_first_start_to_last_end_of_all_requests",
    ),
    "an overdue arrival": ("test_drivers.py::test_overdue_arrivals_leave_at_once_and_keep_their_due_times",),
    "a rate with `--concurrency`": (
        "test_timing.py::test_under_a_ceiling_an_arrival_leaves_the_moment_a_slot_frees",
        "test_drivers.py::test_an_arrival_without_a_slot_waits_and_leaves_when_one_frees",
    ),
    "latency from the due time": (
        "test_wrong_numbers.py::test_failures_enter_no_latency",
        "test_metric_latency.py::test_values_are_those_worked_out_by_hand",
        "test_metric_latency.py::test_what_was_never_due_has_neither_slip_nor_response_latency",
    ),
    "end of a request with an HTTP error": (
        "test_wrong_numbers.py::test_an_http_error_ends_when_its_answer_ends",
    ),
    "requests aborted by grace expiry or Ctrl-C": (
        "test_exporter_arrivals.py::test_an_aborted_request_has_its_end_and_a_broken_answer_is_cut",
        "test_one_count.py::test_the_duration_and_the_requests_in_flight_follow_from_the_ledger",
        "test_timing.py::test_what_the_grace_period_cuts_is_aborted_and_counted",
        "test_timing.py::test_one_ctrl_c_leaves_partial_results_that_say_so",
    ),
    "a measurement section and a verdict": (
        "test_verdict_measurement.py::test_a_run_with_nothing_to_object_to_is_trustworthy",
        "test_verdict_measurement.py::test_slip_is_suspect_beyond_a_millisecond_and_a_twentieth_of_the_gap",
        "test_verdict_measurement.py::test_reads_without_stamps_are_suspect_beyond_one_in_a_hundred",
        "test_verdict_measurement.py::test_merged_chunks_name_their_cause",
        "test_verdict_measurement.py::test_a_closed_loop_is_suspect_where_the_client_is_its_limit",
    ),
    "what a time slice holds": (
        "test_grouped.py::test_requests_count_where_they_end_chunks_and_tokens_where_they_arrive",
        "test_slices.py::test_slices_add_up_to_the_run_and_start_with_the_phase",
    ),
    "latency of requests in flight at the cut-off": (
        "test_slices.py::test_requests_cut_off_at_the_end_lasted_at_least_so_long",
        "test_survival.py::test_the_product_limit_is_the_one_worked_out_by_hand",
    ),
    "a stream that ends cleanly without a finish reason and `[DONE]`, where other answers have a finish reason": (
        "test_reduce.py::test_a_stream_that_ends_early_is_cut_where_others_have_a_finish_reason",
    ),
    "the server's token counts, where several events have some": (
        "test_usage.py::test_the_usage_of_several_events_is_one",
        "test_stranger_dialects.py::test_usage_of_two_events_is_one",
    ),
    "the server's token counts of several answers to a request (`n`)": (
        "test_finish_reasons.py::test_the_tokens_of_several_choices_are_those_of_all",
        "test_finish_reasons.py::test_counts_that_cannot_be_told_apart_by_choice_are_told",
    ),
    "token counts that are negative, no whole numbers, no numbers, or no object": (
        "test_bad_usage.py::test_a_count_that_is_none_fails_no_answer_and_is_not_used",
        "test_finish_reasons.py::test_counts_that_are_none_are_not_used_and_told_once",
    ),
    "finish reasons": (
        "test_finish_reasons.py::test_each_request_has_the_reason_that_its_server_sent",
        "test_finish_reasons.py::test_the_summary_counts_them_in_json_and_csv",
        "test_finish_reasons.py::test_one_warning_tells_of_filters_refusals_and_errors",
    ),
    "chat answers in `refusal`, or as sound with a transcript": (
        "test_finish_reasons.py::test_a_refusal_and_a_transcript_are_answers",
    ),
    "an empty answer with a finish reason or token counts": ("test_ends.py::test_an_empty_answer_is_told_by_its_end",),
    "a text so far that shrinks (`sglang_generate`, `generate`): a stop string that is taken back": (
        "test_ends.py::test_text_that_was_taken_back_is_not_counted",
        "test_endpoint_sglang_generate.py::test_of_a_text_that_shrinks_what_stayed_counts_and_it_is_said_once",
    ),
    "tokens that are marked `special` (`huggingface_generate`)": (
        "test_endpoint_huggingface_generate.py::test_an_answer_means",
    ),
    "an error status with an event stream as its body": (
        "test_ends.py::test_an_error_status_with_an_event_stream_has_the_message_of_its_first_data",
    ),
    "whole answers, where streams were asked for": (
        "test_verdict_measurement.py::test_whole_answers_are_told_where_streams_were_asked_for",
        "test_stranger_dialects.py::test_a_stream_of_another_framing_is_told",
    ),
    "how requests failed": (
        "test_one_count.py::test_every_file_counts_failed_requests_alike",
        "test_wrong_numbers.py::test_what_became_of_each_request_is_what_the_server_did",
        "test_reduce.py::test_a_good_status_without_a_good_answer_is_an_error",
    ),
    "parts of an HTTP exchange": (
        "test_metrics.py::test_the_parts_of_every_exchange_add_up",
        "test_metric_http_trace.py::test_values_are_those_worked_out_by_hand",
    ),
    "`http_req_chunks_sent`": ("test_wrong_numbers.py::test_how_writes_were_cut_is_no_metric",),
    "`--goodput`": (
        "test_metric_goodput.py::test_values_are_those_worked_out_by_hand",
        "test_metric_goodput.py::test_of_a_list_every_element_must_be_good",
        "test_metrics.py::test_goodput_and_throughput_share_their_denominator",
        "test_metrics.py::test_a_percentile_counts_failures_and_says_what_room_is_left",
        "test_metrics.py::test_an_impossible_objective_refuses_the_run",
    ),
    "curves over time (`effective_…`, `active_…`)": (
        "test_metric_concurrency.py::test_means_are_those_worked_out_by_hand",
        "test_metric_concurrency.py::test_tokens_that_nobody_streams_or_counts_have_no_flow",
        "test_metric_concurrency.py::test_beyond_the_budget_tokens_are_spread_evenly_for_any_reducers",
        "test_metric_concurrency.py::test_concurrency_counts_failed_requests_and_idle_time",
    ),
    "`context_overflow_count`": (
        "test_metric_errors.py::test_servers_that_say_the_context_is_full_are_understood",
        "test_metrics.py::test_a_context_that_is_full_is_told_from_other_failures",
    ),
    "results by the values of a text, such as a model or a task": (
        "test_by_text.py::test_each_task_has_its_requests_and_results",
    ),
    "results of each of several URLs": (
        "test_slices.py::test_urls_and_kinds_of_failure_have_their_own_numbers",
    ),
    "record `credit_issued_ns`": (
        "test_wrong_numbers.py::test_requests_have_the_time_they_were_due_as_their_beginning",
        "test_reference_readers.py::test_every_record_can_be_read_and_they_come_to_the_summary",
    ),
    # Load
    "a public data set": (
        "test_dataset_public.py::test_a_set_is_fetched_at_its_pinned_commit_once",
        "test_dataset_public.py::test_an_interrupted_run_is_resumed_by_the_next",
        "test_recipes.py::test_r5_public_data_set",
    ),
    "entries of a public data set": ("test_dataset_public.py::test_a_few_conversations_of_a_large_set_fetch_one_file",),
    "`--public-dataset` with `--input-file`": ("test_dataset_public.py::test_a_local_copy_may_have_any_of_its_forms",),
    "distributions of lengths and sizes in a configuration file": (
        "test_dataset_synthetic_media.py::test_sizes_of_pictures_have_their_distributions",
        "test_dataset_synthetic_distributions.py::test_each_form_is_drawn_from",
        "test_dataset_synthetic_distributions.py::test_min_and_max_are_kept",
        "test_configuration_yaml.py::test_a_distribution_of_more_than_a_mean_and_a_spread_is_an_option_of_its_own",
    ),
    "`--random-range-ratio`": (
        "test_dataset_synthetic.py::test_lengths_of_a_window_depend_on_the_seed_and_the_number_alone",
        "test_dataset_synthetic_options.py::test_the_bounds_of_a_window_are_exact",
    ),
    "`--random-corpus-style` with `--prompt-corpus random`": (
        "test_dataset_synthetic.py::test_random_tokens_in_order_follow_one_another_in_the_vocabulary",
    ),
    "`--audio-format random`": ("test_dataset_synthetic_media.py::test_random_draws_wav_and_mp3",),
    "films": (
        "test_dataset_synthetic_video.py::test_a_decoder_finds_what_was_asked_for",
        "test_dataset_synthetic_video.py::test_what_ffmpeg_cannot_make_is_told_before_the_run",
    ),
    "pictures, clips and films of generated entries": (
        "test_dataset_synthetic_media.py::test_an_entry_is_a_function_of_the_seed_and_its_number",
        "test_dataset_synthetic_media.py::test_media_leave_the_texts_as_they_were",
        "test_dataset_synthetic_video.py::test_a_film_is_a_function_of_seed_and_entry",
    ),
    "`audio_duration` of a WAV, FLAC or MP3 file that the data set doesn't know the length of": (
        "test_store.py::test_the_sound_of_a_turn_is_its_own",
    ),
    "no stop condition, no rate": (
        "test_configure.py::test_the_default_count_follows_the_concurrency",
        "test_configure.py::test_a_chosen_count_is_said",
    ),
    "no stop condition, a series of rates": ("test_load_options.py::test_what_ends_a_phase",),
    "`--prefill-concurrency` without `--concurrency` or a rate": (
        "test_load_options.py::test_without_pacing_something_holds_requests_back",
    ),
    "grace period of a user-centric duration": (
        "test_load_options.py::test_users_are_waited_for_where_no_grace_is_given",
    ),
    "warmup beside a series of rates": ("test_load_options.py::test_a_warmup_is_a_burst_or_paced_whatever_profiling_is",),
    "warmup and profiling": (
        "test_timing.py::test_a_warmup_changes_nothing_of_what_profiling_sends",
        "test_configure.py::test_profiling_starts_at_the_first_entry_and_a_warmup_uses_others",
    ),
    "warmup with smoothness and no pattern": ("test_configure.py::test_a_warmup_inherits_what_it_was_not_given",),
    "every warmup request fails": ("test_wrong_numbers.py::test_a_warmup_in_which_everything_failed_is_told",),
    "a rate that is ramped": (
        "test_rates.py::test_a_ramp_to_two_per_second_has_twenty_requests_on_average",
        "test_rates.py::test_the_load_under_a_ramp_is_the_area_under_its_curve",
        "test_timing.py::test_a_ramped_rate_delivers_its_integral",
    ),
    "a series of rates": ("test_rates.py::test_a_series_follows_its_points_and_keeps_the_last_rate",),
    "an arrival in user-centric mode whose conversation is shorter than its user's history": (
        "test_timing.py::test_users_with_conversations_of_any_length_miss_no_slot",
        "test_sessions.py::test_every_slot_has_one_request_whatever_the_conversations_lengths",
    ),
    "`--request-count` in user-centric and fixed-schedule mode": (
        "test_starts.py::test_a_request_count_is_met_exactly_by_the_first_slots",
        "test_starts.py::test_counts_and_durations_cut_the_trace",
    ),
    "a window of a trace": (
        "test_sessions.py::test_a_trace_starts_at_its_offset",
        "test_sessions.py::test_a_window_keeps_a_conversation_whole_or_leaves_it_out",
        "test_timing.py::test_a_trace_is_replayed_at_its_times",
    ),
    "a trace's offset": (
        "test_sessions.py::test_a_trace_starts_at_its_offset",
        "test_load_options.py::test_a_trace_begins_at_its_first_request_unless_a_start_is_given",
    ),
    "model of a turn": ("test_wrong_numbers.py::test_turns_of_a_session_have_one_model",),
    "a file that several formats know": (
        "test_hook_recognition.py::test_the_longest_list_of_keys_decides_without_importing_others",
        "test_hook_recognition.py::test_near_misses_are_named_first",
        "test_hook_recognition.py::test_a_file_of_several_or_no_formats_is_refused_by_name",
        "test_dataset_single_turn.py::test_it_knows_its_rows",
        "test_dataset_mooncake_trace.py::test_it_knows_its_rows",
    ),
    "pictures of a data set": (
        "test_dataset_single_turn.py::test_files_of_media_are_read_and_encoded",
        "test_dataset_single_turn.py::test_a_file_that_is_no_picture_is_refused_with_its_line",
    ),
    "a SageMaker capture": (
        "test_dataset_sagemaker_data_capture.py::test_requests_come_in_the_order_of_their_times",
    ),
    "the slot of a conversation that starts others": (
        "test_tree_drivers.py::test_random_trees_are_sent_whole_and_in_order",
    ),
    "a turn that joins children, and has a delay": (
        "test_tree_drivers.py::test_random_trees_are_sent_whole_and_in_order",
    ),
    "a turn with a delay": (
        "test_session_driver.py::test_a_turn_without_a_time_is_due_from_the_stamp_of_the_answer",
        "test_engine.py::test_a_turn_is_due_from_the_stamp_of_the_answer_not_from_its_handling",
    ),
    "files made to harm, and pipes": (
        "test_endpoint_template.py::test_a_text_that_grows_is_refused_before_it_fills_the_memory",
        "test_bad_input_files.py::test_a_file_made_to_harm_costs_little",
        "test_bad_input_files.py::test_a_pipe_is_read_once_and_kept",
        "test_endpoint_template.py::test_a_template_has_bounds",
    ),
    "errors in a data file": (
        "test_row_files.py::test_a_bad_row_is_named_with_its_line",
        "test_dataset_single_turn.py::test_a_row_that_breaks_a_rule_is_named_with_its_line",
    ),
    "`--shared-system-prompt-length`, `--user-context-prompt-length` with a file": (
        "test_recipes.py::test_r8_own_conversations_with_a_shared_system_prompt",
    ),
    "files that are compressed, or tables": (
        "test_row_files.py::test_rows_come_with_their_lines_also_from_a_compressed_file",
        "test_row_files.py::test_rows_of_a_zstd_file_have_their_lines",
        "test_row_files.py::test_a_header_without_commas_tells_what_is_between_values",
        "test_row_files.py::test_columnar_files_have_rows_and_types",
    ),
    "`--input-file s3://…`, `gs://…`, `https://…`": (
        "test_sources.py::test_a_url_is_read_from_its_local_copy",
        "test_hook_remote_files.py::test_a_file_is_copied_once_as_long_as_it_stays_the_same",
    ),
    "media of rows": ("test_dataset_single_turn.py::test_media_outside_the_files_folder_need_a_word",),
    "OpenTelemetry GenAI spans": ("test_dataset_otel_spans.py::test_every_form_of_a_file_gives_the_same_requests",),
    "genai-perf's `payload:FILE`, `synthetic:queries,passages` and paired queries": (
        "test_sources.py::test_a_word_before_the_file_chooses_its_format",
        "test_dataset_genai_perf.py::test_queries_and_passages_are_paired_by_row",
    ),
    "`--endpoint-type template`": (
        "test_endpoint_template.py::test_text_is_never_escaped_as_html",
        "test_endpoint_template.py::test_a_template_that_cannot_work_is_refused_before_the_run",
        "test_endpoint_template.py::test_a_bad_expression_is_refused_before_the_run",
    ),
    "`--endpoint-type huggingface_generate`": (
        "test_endpoint_huggingface_generate.py::test_extras_of_the_run_are_parameters_and_those_of_a_row_are_fields",
        "test_endpoint_huggingface_generate.py::test_pictures_stand_before_the_text",
    ),
    "`--endpoint-type generate`, `sglang_generate`, `ollama`": (
        "test_endpoint_generate.py::test_the_body_is_exactly_this",
        "test_endpoint_sglang_generate.py::test_the_body_is_exactly_this",
        "test_endpoint_ollama.py::test_the_body_is_exactly_this",
    ),
    "`--endpoint-type kserve`": (
        "test_endpoint_kserve.py::test_inputs_that_the_model_does_not_list_are_left_out_and_said_once",
    ),
    "`--endpoint-type dynamic_grpc`": (
        "test_endpoint_dynamic_grpc.py::test_several_messages_are_parts_with_their_waits",
        "test_endpoint_dynamic_grpc.py::test_a_row_that_is_no_call_of_the_method_is_named",
    ),
    "`--endpoint-type tensorrtllm_engine`": (
        "test_engine_runs.py::test_an_engine_is_loaded_once_and_measured",
        "test_endpoint_tensorrtllm_engine.py::test_a_request_that_the_library_does_not_take_is_an_error",
    ),
    "`--url unix:///PATH`": (
        "test_local_sockets.py::test_a_socket_of_this_machine_is_measured",
        "test_transport_local.py::test_events_of_one_read_may_all_have_come_earlier",
    ),
    "`--server-control-url`": (
        "test_configure.py::test_another_server_serves_what_is_no_load",
        "test_hook_server_control.py::test_what_is_asked_over_http_needs_such_a_server",
    ),
    "a proxy that speaks SOCKS": (
        "test_socks.py::test_requests_go_through_the_proxy_on_one_connection",
        "test_socks.py::test_without_the_extra_a_socks_proxy_is_refused",
    ),
    "`payload` rows of a trace": ("test_dataset_mooncake_trace.py::test_chats_and_bodies_are_sent_as_they_are",),
    "session and request ids": ("test_wrong_numbers.py::test_ids_are_of_this_run_alone",),
    "waiting for a slot": (
        "test_timing.py::test_who_waits_for_a_slow_server_uses_no_processor",
        "test_slots.py::test_who_waits_for_a_shared_slot_is_called_when_one_frees",
    ),
    "random draws": (
        "test_shards.py::test_inputs_and_arrivals_are_the_same_for_any_workers",
        "test_build.py::test_one_seed_gives_the_same_bytes_for_any_shards",
        "test_draws.py::test_numbers_of_a_seed_never_change",
        "test_request_rate.py::test_numbers_of_a_seed_never_change",
    ),
    "`--ui-type`": ("test_display.py::test_a_display_that_fails_is_named_once_and_the_log_goes_on",),
    "`--workers-max`": (
        "test_configure.py::test_workers_come_from_the_load",
        "test_configure.py::test_a_number_of_workers_can_be_asked_for_exactly",
        "test_load_options.py::test_workers_come_from_rates_limits_and_users",
    ),
    "connections of the first requests": ("test_preconnect.py::test_the_first_wave_connects_where_nothing_was_opened_ahead",),
    "connections": (
        "test_wrong_numbers.py::test_the_limit_of_open_files_is_raised",
        "test_wrong_numbers.py::test_a_limit_of_open_files_that_is_too_low_is_named",
    ),
    "retries": (
        "transports/losses.py::test_what_the_server_has_read_is_never_sent_again",
        "transports/losses.py::test_a_close_that_crosses_the_request_does_no_harm",
        "transports/losses.py::test_a_second_connection_that_fails_is_the_end_of_it",
        "transports/losses.py::test_a_fresh_connection_without_an_answer_is_an_error_and_never_retried",
    ),
    "a server that can't be reached": (
        "test_engine.py::test_slots_without_a_connection_pause_longer_with_each_wave",
        "test_engine.py::test_refused_arrivals_with_due_times_hold_nothing_up",
        "test_unreachable.py::test_a_server_that_never_lived_ends_the_run_in_time",
        "test_unreachable.py::test_the_report_names_the_moment_when_a_server_died",
        "test_unreachable.py::test_a_gap_in_mid_run_is_told_with_its_length",
        "test_reach.py::test_a_typed_limit_always_holds_and_none_beside_a_duration",
        "test_reach.py::test_a_run_ends_by_time_where_all_of_its_phases_do",
    ),
    "a limit of this machine (open files, local ports)": (
        "transports/refusals.py::test_an_exhausted_client_is_no_fault_of_the_server",
        "test_verdict_measurement.py::test_failed_connections_are_suspect_from_their_first_instant",
        "test_wrong_numbers.py::test_a_client_at_its_limit_is_no_fault_of_the_server",
        "test_wrong_numbers.py::test_a_closed_loop_beyond_the_limit_of_open_files_is_refused",
    ),
    "limits of an answer": (
        "transports/limits.py::test_a_status_below_100_is_an_error",
        "transports/limits.py::test_endless_headers_are_an_error",
        "transports/limits.py::test_an_answer_beyond_the_limit_is_an_error",
        "test_framing.py::test_an_event_without_end_is_given_up_and_a_long_stream_is_not",
        "transports/refusals.py::test_a_silent_handshake_ends_soon",
        "transports/limits.py::test_a_stream_left_open_behind_its_end_marker_is_over",
    ),
    # Command line
    "exit code of a usage error (unknown option, unreadable value, value out of range)": (
        "test_bad_input.py::test_a_command_line_that_cannot_be_read_exits_2",
    ),
    "one Ctrl-C": (
        "test_signals.py::test_ctrl_c_writes_what_there_is_and_exits_130",
        "test_signals.py::test_requests_in_flight_may_finish_after_the_first_ctrl_c",
    ),
    "two Ctrl-C": ("test_signals.py::test_a_second_ctrl_c_ends_the_run_and_keeps_the_journal",),
    "a closed standard stream, a reader that leaves (`head -1`)": (
        "test_surroundings.py::test_a_good_run_is_good_whoever_reads_what_it_prints",
        "test_surroundings.py::test_a_report_that_has_no_room_on_the_disk_is_said",
    ),
    "SIGINT of a job that a script started with `&`": (
        "test_surroundings.py::test_a_signal_that_comes_before_everything_ends_a_run",
    ),
    "SIGHUP, a closed terminal": (
        "test_signals.py::test_sighup_does_the_same_and_exits_129",
        "test_signals.py::test_a_terminal_that_is_closed_ends_the_run_with_its_results",
        "test_signals.py::test_sighup_that_was_ignored_at_the_start_stays_ignored",
    ),
    "SIGTERM": ("test_signals.py::test_sigterm_does_the_same_and_exits_143",),
    "every request failed": ("test_bad_input.py::test_a_server_that_answers_404_to_everything",),
    "log lines": ("test_wrong_numbers.py::test_the_report_is_on_standard_output_and_talk_on_standard_error",),
    "command in the report": (
        "test_cli.py::test_the_command_is_kept_as_typed_without_secrets",
        "test_exporter_console.py::test_the_command_is_printed_as_typed",
    ),
    "`--header` values": ("test_pairs.py::test_header_values_are_opaque",),
    "lists (`--url a b`)": ("test_argv.py::test_arities",),
    '`--endpoint ""`': (
        "test_pairs.py::test_urls_are_joined_without_repeating",
        "test_configure.py::test_the_path_is_the_endpoints_or_the_one_given",
    ),
    "unknown option": (
        "test_argv.py::test_hints_are_close_matches_or_the_help",
        "test_hook_other_tools.py::test_an_option_of_another_program_has_an_answer",
    ),
    "console titles": ("test_exporter_console.py::test_no_vendor_is_named",),
    "`--percentiles`, `--columns`": (
        "test_terminal.py::test_files_have_the_percentiles_that_were_chosen",
        "test_statistics.py::test_a_percentile_that_was_asked_for_stands_in_its_place_in_the_entry",
    ),
    "order of the console's tables": (
        "test_exporter_console.py::test_latency_comes_first_groups_behind_it_and_unordered_metrics_are_hidden",
        "test_exporter_console.py::test_latency_and_throughput_stand_before_lengths_and_counts",
        "test_exporter_console.py::test_a_row_that_repeats_another_to_the_digit_is_named_below_the_table",
        "test_exporter_console.py::test_parts_of_http_requests_are_shown_only_when_asked_behind_the_rest",
    ),
    "`--stats-interval` on a terminal": ("test_live_views.py::test_progress_lines_are_in_the_log_without_escapes",),
    "progress without a terminal": (
        "test_ui_simple.py::test_without_a_terminal_the_simple_display_writes_occasional_lines",
        "test_wrong_numbers.py::test_the_report_is_on_standard_output_and_talk_on_standard_error",
    ),
    "`--request-cancellation-rate 0`": ("test_load_options.py::test_cancellation_is_a_share_and_never_the_warmups",),
    "`--ramp`": (
        "test_load_options.py::test_the_curve_of_a_ramp_is_chosen_by_name",
        "test_ramps.py::test_an_exponential_ramp_reaches_a_level_at_the_root_of_its_share",
    ),
    "`--config FILE`": (
        "test_configuration_yaml.py::test_what_is_wrong_is_said_where_it_stands",
        "test_configuration_yaml.py::test_beside_the_benchmark_stand_the_seed_and_what_is_installed",
        "test_strangers.py::test_a_configuration_file_sets_a_third_party_option",
    ),
    "`--url-strategy`": ("test_load_options.py::test_urls_may_carry_weights",),
    "request that asks whether the server is ready": (
        "test_readiness.py::test_the_question_is_a_request_of_the_endpoint_to_its_path",
        "test_readiness.py::test_every_model_is_asked_at_every_url",
        "test_readiness.py::test_every_url_must_be_ready_and_those_that_are_not_are_named",
    ),
    "a variable of the environment out of range": ("test_load_options.py::test_a_variable_out_of_range_is_one_line",),
    "`AIPERF_SERVICE_START_TIMEOUT`": ("test_load_options.py::test_what_the_environment_leaves_open",),
    "`AIPERF_HTTP_SO_RCVBUF`, `_SO_SNDBUF`": (
        "test_load_options.py::test_what_the_environment_leaves_open",
        "test_transport_sockets.py::test_a_peer_that_is_gone_is_noticed_as_the_environment_says",
    ),
    "`AIPERF_HTTP_IP_VERSION`": (
        "test_wrong_numbers.py::test_a_server_on_ipv6_alone_is_reached",
        "test_load_options.py::test_what_the_environment_leaves_open",
    ),
    # Files
    "summary JSON": (
        "test_exporter_json.py::test_every_field_there_can_be_is_in_the_schema",
        "test_exporter_json.py::test_the_measurement_has_its_verdict_and_nothing_unknown",
    ),
    "`aiperf_version`, `schema_version`": ("test_files.py::test_the_summary_opens_with_where_it_comes_from",),
    "`start_time`, `end_time`": ("test_exporter_json.py::test_times_say_that_they_are_utc",),
    "order of rows and keys": (
        "test_exporter_json.py::test_the_same_summary_gives_the_same_bytes",
        "test_exporter_json.py::test_keys_come_in_the_references_order_and_other_metrics_last_by_tag",
        "test_exporter_csv.py::test_both_sections_are_sorted_by_tag_and_lines_end_in_crlf",
    ),
    "`profile_export_arrivals.jsonl`, `journal/`": (
        "test_files.py::test_every_planned_arrival_is_accounted_for",
        "test_files.py::test_the_ledger_knows_the_records",
        "test_kill.py::test_a_killed_parent_loses_nothing_that_was_observed",
    ),
    "an interrupted run, a damaged journal": (
        "test_damage.py::test_a_report_without_the_columns_names_the_file_and_the_missing_requests",
        "test_damage.py::test_a_flipped_byte_in_a_segment_damages_what_was_in_flight",
        "test_report.py::test_what_an_interrupted_run_did_not_see_is_named",
        "test_report.py::test_arrivals_without_a_request_are_unknown_where_one_may_have_been_sent",
    ),
    "records": (
        "test_files.py::test_a_record_has_the_reference_fields",
        "test_exporter_records.py::test_a_line_has_the_references_fields",
    ),
    "directory of an earlier run": (
        "test_directory.py::test_a_second_run_replaces_all_files_of_the_first",
        "test_directory.py::test_a_run_that_is_refused_leaves_nothing_where_there_was_nothing",
        "test_directory.py::test_a_report_restores_results_after_a_killed_start",
        "test_directory.py::test_two_runs_at_once_into_one_directory_are_refused_by_name",
    ),
    "`.aiperf_results_ready.json`": (
        "test_artifacts.py::test_the_marker_says_how_it_went_to_its_owner_alone",
        "test_artifacts.py::test_a_whole_export_lists_what_was_written_before_the_load_too",
    ),
    "`profile_export_raw.jsonl`": (
        "test_exporter_raw.py::test_lines_follow_the_records_whatever_was_left_out_of_them",
        "test_exporter_raw.py::test_a_stream_is_its_events_each_when_it_came",
        "test_exporter_raw.py::test_an_answer_that_does_not_stream_is_one_response",
    ),
    "`trace_data`": (
        "test_exporter_records.py::test_a_fresh_connections_steps_follow_each_other",
        "test_trace.py::test_headers_that_look_like_credentials_are_not_shown",
    ),
    "the marker of `--cache-bust`": (
        "test_cache_bust.py::test_each_session_has_a_marker_of_its_own",
        "test_cache_bust.py::test_a_conversation_without_a_place_is_refused",
        "test_cache_bust_runs.py::test_no_session_finds_the_prompt_of_another_in_the_cache",
    ),
    "begin of the load": (
        "test_build.py::test_a_load_begins_with_its_first_wave",
        "test_build.py::test_a_load_begins_with_the_entries_that_it_uses_first",
        "test_build.py::test_other_loads_wait_for_the_whole",
        "test_growing_store.py::test_requests_wait_for_their_entries_and_leave_in_order",
        "test_kill.py::test_without_its_builder_a_run_ends_and_tells_what_was_never_sent",
    ),
    "`inputs.json` of traces and of recorded bodies": (
        "test_exporter_inputs.py::test_the_bodies_of_a_trace_are_written_too",
    ),
    "`error.cause`": (
        "test_unreachable.py::test_refused_requests_count_towards_the_request_count",
        "test_reduce.py::test_a_good_status_without_a_good_answer_is_an_error",
    ),
    "`http_req_connection_reused` of a request": (
        "test_preconnect.py::test_the_first_wave_connects_where_nothing_was_opened_ahead",
    ),
    "`credit_to_start_latency` without due times": (
        "test_metric_latency.py::test_what_was_never_due_has_neither_slip_nor_response_latency",
    ),
    "`AIPERF_SERVER_METRICS_COLLECTION_FLUSH_PERIOD`": (
        "test_companion_telemetry.py::test_behind_the_last_phase_samples_go_on_until_two_agree",
    ),
    "`AIPERF_HTTP_TRUST_ENV`": (
        "test_configure.py::test_urls_behind_a_proxy_get_the_transport_that_uses_it",
        "test_configure.py::test_a_transport_without_proxies_is_refused_where_one_is_to_be_used",
    ),
    "`aiperf synthesize`, `--synthesis-*`": (
        "test_command_synthesize.py::test_the_hit_rate_is_what_the_multipliers_imply",
        "test_command_synthesize.py::test_a_run_makes_of_a_trace_what_the_command_writes",
        "test_command_synthesize.py::test_a_conversation_stays_in_one_tree",
    ),
    "`aiperf analyze swim-lane`": (
        "test_analyze_runs.py::test_each_request_is_where_and_as_long_as_it_was",
        "test_analyze_runs.py::test_curves_count_what_is_under_way",
        "test_analyze_runs.py::test_what_cannot_be_written_is_refused",
    ),
    "`aiperf analyze turn-messages`": (
        "test_analyze_runs.py::test_each_message_stands_once_and_each_turn_has_its_own",
        "test_analyze_runs.py::test_the_files_of_the_references_processors_are_read",
    ),
    "`aiperf analyze-trace`": (
        "test_agent_formats.py::test_a_file_is_known_checked_and_counted",
        "test_command_analyze_trace.py::test_the_numbers_are_the_references",
        "test_command_analyze_trace.py::test_a_cut_last_block_makes_no_negative_unique_length",
        "test_command_analyze_trace.py::test_a_compressed_trace_is_read",
    ),
    "`inputs.json` of a load that ends before its data set is made": (
        "test_build.py::test_a_build_that_no_request_needs_ends_early",
    ),
    "what a server repeats of a secret": (
        "test_canary.py::test_no_file_has_a_secret",
        "test_scrubbed_bodies.py::test_a_body_is_scrubbed_before_it_is_shortened",
    ),
    "a key in `payload_template`": (
        "test_redaction.py::test_a_template_shows_which_of_its_fields_are_secret",
        "test_canary.py::test_no_error_of_a_command_line_has_a_secret",
    ),
    "URLs in files": (
        "test_configure.py::test_a_saved_plan_has_no_query_and_no_secret_fields_and_gets_them_back",
        "test_store.py::test_the_query_of_the_given_path_is_not_written",
    ),
    "API key": (
        "test_configure.py::test_a_flag_with_the_key_wins_over_the_variable",
        "test_configure.py::test_a_key_file_without_one_key_is_refused",
    ),
    "headers in files": (
        "test_files.py::test_no_secret_is_in_any_file",
        "test_trace.py::test_headers_set_by_the_user_are_hidden_and_others_shown",
    ),
    "`phase_manifest.json`, `phases/`": ("test_exporter_json.py::test_warmup_and_phases_stand_apart",),
    "distinct error messages": (
        "test_errorkinds.py::test_too_many_messages_of_one_kind_are_counted_as_one",
        "test_errorkinds.py::test_types_and_codes_are_bounded_too",
    ),
    "latencies from the due time on the console": (
        "test_exporter_console.py::test_latencies_from_the_due_time_are_shown_once_requests_are_late",
    ),
    "warnings on answers": (
        "test_verdict_advice.py::test_token_counts_and_lengths_that_disagree_are_told",
        "test_contaminated_runs.py::test_a_cause_is_found_in_most_runs",
        "test_contaminated_runs.py::test_nothing_is_found_in_clean_runs",
        "test_verdict_advice.py::test_reasoning_that_is_counted_and_not_shown_is_told",
    ),
    "a chain of `bailian_trace`": (
        "test_dataset_bailian_trace.py::test_a_chain_whose_rows_are_complete_prompts_is_sent_row_by_row",
        "test_dataset_bailian_trace.py::test_rows_of_new_tokens_follow_the_servers_answers",
    ),
    "`tracelab`": (
        "test_dataset_tracelab.py::test_long_contexts_are_left_out_before_anything_is_taken",
        "test_dataset_tracelab.py::test_long_prompts_are_left_out",
        "test_dataset_tracelab.py::test_results_tell_what_was_found_also_from_the_index",
        "test_dataset_tracelab.py::test_a_worker_at_the_time_of_its_answer_is_joined_later",
    ),
    "block size of `weka_trace`": ("test_dataset_weka_trace.py::test_blocks_have_the_size_of_their_trace",),
    "a prompt of `weka_trace` whose last block is recorded in part": (
        "test_dataset_weka_trace.py::test_a_block_in_part_is_whole_in_the_next_prompt",
    ),
    "`weka_trace` in JSON lines, compressed, or in a directory of such files": (
        "test_dataset_weka_trace.py::test_a_directory_and_a_file_of_one_trace_are_read",
    ),
    "trace ids with `::`": ("test_dataset_weka_trace.py::test_what_is_wrong_is_named_with_its_place",),
    "first prompt of a child, repeated turns, times of subagents": (
        "test_agents_of_traces.py::test_a_child_keeps_the_messages_that_it_shares",
        "test_dataset_weka_trace.py::test_a_repeated_request_sends_its_prompt_again",
        "test_dataset_weka_trace.py::test_times_of_subagents_have_one_clock",
    ),
    "start with recorded agents": (
        "test_dataset_weka_trace.py::test_later_runs_begin_with_the_index",
        "test_growing_store.py::test_trees_are_known_before_they_are_made",
    ),
    "rows of `burst_gpt_trace` that can't be sent": (
        "test_dataset_burst_gpt_trace.py::test_rows_that_cannot_be_sent_are_counted",
    ),
    "`messages` alone, or with `model`, `stream`, `max_tokens`": (
        "test_dataset_mooncake_trace.py::test_it_knows_its_rows",
        "test_dataset_raw_payload.py::test_it_knows_its_rows",
    ),
    "order of `random_pool`": ("test_dataset_random_pool.py::test_the_order_is_shuffled",),
    "`prompt_tokens` of a captured answer (`sagemaker_data_capture`)": (
        "test_dataset_sagemaker_data_capture.py::test_the_captured_count_is_not_the_input_length",
    ),
    "`aiperf validate`": (
        "test_command_validate.py::test_what_is_wrong_is_said_where_it_is",
        "test_command_validate.py::test_files_that_are_as_they_should_be_have_no_fault",
    ),
    "`aiperf report DIR... --html`": (
        "test_report_page.py::test_sections_come_in_order_and_failures_have_their_text",
        "test_report_pages.py::test_runs_of_the_reference_stand_side_by_side",
    ),
    "`aiperf report DIR --definitions`": (
        "test_definition_tools.py::test_each_tool_reads_its_own_numbers",
        "test_definitions.py::test_every_definition_reads_a_run_and_keeps_its_files",
    ),
    "pictures behind a run (`--auto-plot`, `plot:`)": (
        "test_auto_plot.py::test_the_declared_pictures_stand_in_the_directory",
        "test_auto_plot.py::test_required_pictures_need_what_draws_them",
        "test_auto_plot.py::test_settings_of_no_picture_are_refused",
    ),
    "`aiperf speed-bench-report`": (
        "test_speed_bench_report.py::test_the_acceptance_length_comes_from_the_first_source",
        "test_speed_bench_report.py::test_series_of_the_profiling_phase_stand_in_the_summary",
        "test_speed_bench_report.py::test_repeats_are_averaged_and_counted",
    ),
    "`aiperf plot`": (
        "test_command_plot.py::test_every_plot_is_a_file_of_its_name",
        "test_command_plot.py::test_numbers_go_to_standard_output_and_no_file_is_written",
        "test_command_plot.py::test_results_under_a_prefix_are_found",
    ),
    "concurrency of a run in a picture": ("test_plot_basics.py::test_the_concurrency_is_what_was_measured",),
    "`usage_inter_token_latency`": ("test_metric_usage.py::test_latency_by_the_servers_count_has_the_servers_gaps",),
    "`usage_prompt_tokens_extra`": ("test_metric_usage.py::test_extra_prompt_tokens_are_signed",),
    "a count of 0 tokens by the server, in `usage_…_diff_pct` and `usage_prompt_tokens_extra`": (
        "test_metric_usage.py::test_a_difference_is_unsigned_in_percent_of_the_clients_count",
        "test_metric_usage.py::test_extra_prompt_tokens_are_signed",
    ),
    "a request that ended its conversation for want of context, in `profile_export.jsonl`": (
        "test_exporter_records.py::test_a_request_longer_than_the_context_says_so",
        "test_results.py::test_a_request_skipped_for_want_of_context_is_neither_good_nor_failed",
    ),
    "`branch_stats`": (
        "test_metric_trees.py::test_a_join_whose_turn_never_left_was_suppressed",
        "test_metric_trees.py::test_a_failure_that_ends_the_tree_early_is_no_cut",
    ),
    "`theoretical_prefix_cache_hit`": ("test_metric_prefix_cache.py::test_the_share_is_of_all_blocks",),
    "`run_info.random_seed`": ("test_configure.py::test_a_seed_is_kept_and_without_one_each_run_has_its_own",),
    "`input_config.endpoint.path`": ("test_configure.py::test_the_configuration_shown_holds_what_was_set_or_derived",),
    "`input_config.artifacts.records`": ("test_configure.py::test_the_configuration_shown_holds_what_was_set_or_derived",),
    "output length of embeddings and rankings": (
        "test_recipes.py::test_r7_embeddings_in_batches",
        "test_endpoint_runs.py::test_a_run_of_this_type_agrees_with_the_server",
    ),
    "`usage` of embeddings and rankings": ("test_endpoint_embeddings.py::test_vectors_in_base64_count_by_their_bytes",),
    "`gen_ai.client.token.usage` of the input": ("test_exporter_otel.py::test_tokens_of_both_directions_share_a_metric",),
    "`aiperf.timing.sessions.*`, `aiperf.timing.phase.grace_timeout_triggered`, `.was_cancelled`": (
        "test_otel_runs.py::test_a_collector_gets_what_the_files_have",
    ),
    "`--stream` without `--otel-url`, and other settings of a tracker that is off": (
        "test_exporter_otel.py::test_settings_without_an_address_are_refused_by_name",
    ),
    "a failed upload to a tracker": (
        "test_uploads.py::test_each_item_that_is_left_has_a_reason_without_secrets",
        "test_trackers.py::test_receivers_that_are_not_there_leave_a_run_as_it_is",
    ),
    "a password in `--mlflow-tracking-uri`": ("test_exporter_mlflow.py::test_an_address_with_a_password_is_refused",),
    "the summary of a run in Weights & Biases": (
        "test_exporter_wandb.py::test_an_offline_run_has_the_table_the_configuration_and_the_files",
    ),
    "`--upload URL`, `--upload-journal`": (
        "test_exporter_upload.py::test_a_bucket_has_the_files_and_the_marker_last",
        "test_exporter_upload.py::test_a_file_that_fails_keeps_the_marker_back",
    ),
    "Parquet": (
        "test_exporter_parquet.py::test_a_row_says_how_many_of_its_gaps_are_estimates",
        "test_exporter_parquet.py::test_a_table_says_of_which_run_it_is",
        "test_exporter_parquet.py::test_a_row_is_a_line_of_the_per_request_file",
        "test_exporter_parquet.py::test_every_chunk_is_a_row_with_instant_and_gap",
    ),
    "`input_config`": (
        "test_configure.py::test_the_configuration_shown_holds_what_was_set_or_derived",
        "test_reference_readers.py::test_the_configuration_has_only_sections_that_readers_accept",
    ),
    # Answers
    "event streams": (
        "test_sse.py::test_a_whole_stream_gives_its_events",
        "test_sse.py::test_one_cut_anywhere_changes_nothing",
        "test_sse.py::test_any_partition_gives_the_same_events",
    ),
    '`{"error": …}` with status 200, or in a stream': (
        "test_wrong_numbers.py::test_an_error_within_a_stream_keeps_what_the_server_said",
        "test_answer.py::test_an_in_band_error_keeps_earlier_content_and_the_servers_message",
    ),
    "`event: error`": (
        "test_wrong_numbers.py::test_an_error_within_a_stream_keeps_what_the_server_said",
        "test_answer.py::test_an_event_named_error_is_one_whatever_it_carries",
    ),
    "an event of a stream that can't be read": (
        "test_answer.py::test_unreadable_events_before_the_first_content_bound_its_instant",
        "test_reduce.py::test_unreadable_events_are_counted_and_bound_the_first_token",
    ),
    "a server's count of 0 tokens for an answer with content, under `--use-server-token-count`": (
        "test_reduce.py::test_zero_tokens_are_not_believed_of_an_answer_with_content",
    ),
    "the text of an error": ("test_reduce.py::test_a_huge_error_is_kept_by_its_beginning_and_its_size",),
    "an answer without `object`": ("test_endpoint_chat.py::test_an_event_means",),
    "an answer with fewer or more vectors, or scores, than the request asks for; vectors of two lengths in one answer": (
        "test_reduce.py::test_an_answer_with_another_number_of_items_than_asked_for_is_an_error",
        "test_endpoint_runs.py::test_another_answer_than_asked_for_is_an_error",
        "test_endpoint_embeddings.py::test_an_answer_without_good_vectors_is_a_bad_response",
    ),
    "vectors of another length later in a run": (
        "test_metric_embeddings.py::test_the_warning_names_both_lengths",
        "test_endpoint_runs.py::test_what_an_endpoint_of_vectors_cannot_do_is_said",
    ),
    "vectors as base64": (
        "test_endpoint_embeddings.py::test_vectors_in_base64_count_by_their_bytes",
        "test_endpoint_embeddings.py::test_an_answer_without_good_vectors_is_a_bad_response",
    ),
    "input tokens of rankings": (
        "test_endpoint_nim_rankings.py::test_query_and_passages_count_as_input_in_this_order",
        "test_endpoint_runs.py::test_a_run_of_this_type_agrees_with_the_server",
    ),
    "answers of rankings": ("test_scores.py::test_scores_are_read_in_every_form",),
    "`rankings`, `score`, `classify`, `pooling`, `nvclip`": (
        "test_endpoint_runs.py::test_a_run_of_this_type_agrees_with_the_server",
    ),
    "`--endpoint-type audio_speech`": (
        "test_endpoint_audio_speech.py::test_a_clip_has_its_seconds_and_begins_behind_its_header",
    ),
    "`--endpoint-type audio_transcription --streaming`": (
        "test_endpoint_audio_transcription.py::test_the_form_asks_for_usage_where_it_counts",
        "test_endpoint_audio_transcription.py::test_the_whole_text_at_the_end_counts_where_no_piece_came",
    ),
    "`--endpoint-type image_edit --streaming`": ("test_endpoint_image_edit.py::test_the_form_is_exactly_this",),
    "`num_images` of types that make images": (
        "test_endpoint_image_generation.py::test_images_are_counted_where_they_are_whole",
        "test_metric_media.py::test_images_of_an_answer_count_instead_of_those_asked_with",
    ),
    "an image of an answer with `b64_json: null`, and damaged base64": (
        "test_endpoint_image_generation.py::test_images_are_counted_where_they_are_whole",
        "test_endpoint_image_generation.py::test_damaged_base64_fails_the_request",
    ),
    "polls of `video_generation`": (
        "test_stranger_jobs.py::test_polls_are_not_in_lockstep",
        "test_endpoint_video_generation.py::test_the_interval_is_that_of_the_variable",
    ),
    "an unknown status of a job; an answer without id": (
        "test_endpoint_video_generation.py::test_an_unknown_status_ends_the_job_with_its_third_time",
        "test_endpoint_video_generation.py::test_an_answer_without_id_fails_the_request",
    ),
    "films of `--download-video-content`": (
        "test_following.py::test_a_kept_answer_is_the_request_s",
        "test_endpoint_video_generation.py::test_the_film_is_fetched_from_the_same_server",
    ),
    "completions with several turns": ("test_build.py::test_a_conversation_the_endpoint_cannot_take_is_refused",),
    "`--apply-chat-template` with a tokenizer that has no template, with messages that it refuses, or with an endpoint type"
    " without messages": (
        "test_chat_template_runs.py::test_a_template_that_cannot_be_applied_is_refused",
        "test_chat_template_runs.py::test_a_history_that_the_template_refuses_has_no_length_and_is_told",
        "test_build.py::test_what_a_chat_template_cannot_count_is_refused_before_load",
    ),
    "`--apply-chat-template`, the length of synthetic prompts": (
        "test_chat_template_runs.py::test_a_prompt_is_as_long_as_asked_with_its_template",
        "test_chat_template_runs.py::test_turns_are_counted_as_the_server_got_them",
    ),
    # Server metrics
    "the end of a family's name": ("test_metric_server_metrics_page.py::test_a_gauge_and_a_counter_of_one_stem_stay_apart",),
    "info, state set, gauge histogram of OpenMetrics": (
        "test_metric_server_metrics_page.py::test_each_type_becomes_the_kind_of_series_that_it_is",
    ),
    "a family that can't be read": ("test_metric_server_metrics_page.py::test_one_bad_family_harms_no_other",),
    "summaries": ("test_metric_server_metrics_page.py::test_each_type_becomes_the_kind_of_series_that_it_is",),
    "families `*_created`, `*_uptime`": ("test_metric_server_metrics_page.py::test_times_of_creation_are_no_families",),
    "average of a gauge": ("test_server_metrics_runs.py::test_the_server_counts_what_the_client_saw",),
    "a counter that began again": (
        "test_exporter_server_metrics_parquet.py::test_a_counter_that_began_again_goes_on_growing",
    ),
    "counters at the edges of a phase": ("test_server_metrics_runs.py::test_the_server_counts_what_the_client_saw",),
    "percentiles of a histogram": ("test_exporter_server_metrics.py::test_json_has_histograms_with_estimates_and_edges",),
    "numbers of `server_metrics_export.csv`": ("test_exporter_server_metrics.py::test_csv_has_a_table_for_each_type",),
    "an item of `--server-metrics` without a port and a scheme": (
        "test_metric_server_metrics_source.py::test_an_item_that_is_no_address_has_a_sentence",
    ),
    "the path of a page that the user names": (
        "test_metric_server_metrics_source.py::test_the_page_of_each_server_comes_first_then_those_given",
    ),
    "one page in two spellings": ("test_metric_server_metrics_source.py::test_two_spellings_of_a_page_are_one_target",),
    "a login in the address of a page": ("test_server_metrics_runs.py::test_a_login_stands_in_no_file",),
    # GPU telemetry
    "the table of GPUs": ("test_table_gpus.py::test_with_the_option_people_see_them_always",),
    "XID errors, throttle reasons": ("test_gpu_items.py::test_a_code_is_seen_and_has_no_mean",),
    "MIG instances of a GPU": ("test_metric_gpu_dcgm.py::test_instances_of_a_gpu_stand_apart",),
    "a GPU that two exporters show": ("test_metric_gpu_dcgm.py::test_a_gpu_of_two_exporters_counts_once",),
    "average of a GPU's level": ("test_gpu_runs.py::test_energy_is_what_the_simulator_drew_in_the_phase",),
    "energy": ("test_gpu_runs.py::test_energy_is_what_the_simulator_drew_in_the_phase",),
    "units of a file of metrics": ("test_gpu_items.py::test_lines_of_a_file_are_further_metrics",),
    "keys of GPUs in `telemetry_data`": ("test_gpu_document.py::test_a_key_has_the_host_where_one_page_has_several",),
    "a page without GPUs": ("test_metric_gpu_dcgm.py::test_a_page_without_gpus_that_was_named_is_a_fault",),
    "names of collectors": ("test_reference_names.py::test_every_name_of_a_list_is_here_or_has_a_row",),
    "repeats and sweeps": ("test_studies.py::test_what_is_missing_runs_and_the_rest_stays",),
    "a sweep with a cell that failed": ("test_studies.py::test_a_cell_that_fails_leaves_the_others_whole",),
    "the table of a sweep": ("test_exporter_aggregate.py::test_the_table_marks_cells_that_no_other_beats",),
    "`--tokenizer builtin`": (
        "test_tokenizer_builtin.py::test_opening_needs_no_network",
        "test_recipes.py::test_r15_no_network",
    ),
    # Graders
    "`math`: units": ("test_answers_in_text.py::test_a_text_has_one_spelling",),
    "`math`: a hundredfold": ("test_answers_in_text.py::test_percent_counts_on_one_side_alone",),
    "`math` without optional packages": (
        "test_answers_in_text.py::test_expressions_are_compared_by_value",
        "test_answers_in_text.py::test_an_engine_only_adds_equalities",
    ),
    "`math`: an empty box": ("graders.py::test_every_case_gets_its_grade",),
    "`lighteval_expr`, `lighteval_latex`, `lighteval_gpqa`": (
        "test_answers_in_text.py::test_extractive_candidates_come_by_level",
        "test_answers_in_text.py::test_a_worked_answer_chooses_a_letter",
    ),
    "`lighteval_gsm8k`: large numbers": ("graders.py::test_every_case_gets_its_grade",),
    "`code_execution`": ("test_grader_code_execution.py::test_without_leave_it_is_refused",),
    "packed test cases of LiveCodeBench": (
        "test_grader_code_execution.py::test_packed_test_cases_are_text_and_nothing_else",
    ),
    # Accuracy benchmarks
    "examples of `aime`": ("test_dataset_aime.py::test_examples_are_other_problems_of_the_split",),
    "examples of `mmlu_pro`, `aime`, `hellaswag`, `bigbench` on types with roles": (
        "test_dataset_mmlu_pro.py::test_examples_have_their_reasoning",
        "test_dataset_hellaswag.py::test_examples_are_of_different_activities",
        "test_dataset_bigbench.py::test_examples_are_those_of_the_subtask",
    ),
    "fewer examples in the data than asked for": ("test_problems.py::test_options_out_of_range_get_a_sentence",),
    "options that a benchmark has no use for": ("test_problems.py::test_forms_that_a_protocol_lacks_are_refused",),
    "tasks of `math_500`": ("test_dataset_math_500.py::test_a_subject_is_a_task",),
    "activities of `hellaswag`": ("test_dataset_hellaswag.py::test_activities_are_tasks_in_any_case",),
    "number of problems": ("test_benchmark_runs.py::test_a_benchmark_asks_each_problem_once",),
    "which problem an answer belongs to": ("test_problems.py::test_a_problem_keeps_its_identity_in_other_files",),
    "temperature and seed": ("test_problems.py::test_repeats_come_pass_after_pass_with_seeds_of_their_own",),
    "`--accuracy-verbose`": ("test_problems.py::test_verbose_logs_a_line_for_each_problem",),
    "data of LiveCodeBench": ("test_dataset_lcb_codegeneration.py::test_a_release_is_some_files",),
    "failed requests in an accuracy run": (
        "test_accuracy_numbers.py::test_a_failed_request_is_in_no_share_and_counts_apart",
        "test_accuracy_numbers.py::test_the_console_says_coverage_and_the_summary_how_it_was_asked",
    ),
    "columns of `accuracy_results.csv`": ("test_accuracy_numbers.py::test_the_table_of_tasks_ends_with_all_together",),
    "fields of `accuracy.*`": ("test_accuracy_numbers.py::test_repeats_of_a_problem_make_no_interval_narrower",),
    "keys of `accuracy_export.jsonl`": (
        "test_accuracy_numbers.py::test_lines_are_of_the_schema_and_say_why_there_is_no_grade",
    ),
    "repeated problems": ("test_accuracy_numbers.py::test_repeats_have_pass_at_k_and_the_majoritys_answer",),
    "answers cut at their length": ("test_accuracy_numbers.py::test_more_than_a_twentieth_cut_is_advice",),
    # Latency of the network
    "a probe's round trip": (
        "test_metric_network.py::test_a_probe_gives_the_round_trip_and_closes",
        "test_network_runs.py::test_the_round_trip_through_a_slow_wire_is_measured",
    ),
    "a probe without an answer": (
        "test_metric_network.py::test_a_host_that_drops_probes_is_a_point",
        "test_metric_network.py::test_failed_probes_are_counted_and_said",
    ),
    "`network_rtt`": ("test_metric_network.py::test_latencies_are_less_by_the_mean_round_trip_and_never_negative",),
    "a server behind a proxy": (
        "test_metric_network.py::test_behind_a_proxy_the_probes_go_to_it",
        "test_metric_network.py::test_a_proxy_and_what_ends_tls_are_said",
    ),
    "data of a machine without a network": (
        "test_problems.py::test_without_a_network_the_command_to_fetch_is_named",
        "test_benchmark_runs.py::test_mmlu_is_fetched_and_then_read_without_a_network",
    ),
    "version of the summary JSON": (
        "test_exporter_json.py::test_a_scenarios_keys_stand_in_metadata_and_beside_the_metrics",
    ),
    "counts of contexts that were too long": (
        "test_scenario_agentx.py::test_a_run_that_counts_has_no_reasons_in_its_metadata",
    ),
    "`metadata.dataset`": ("test_dataset_public.py::test_a_set_is_fetched_at_its_pinned_commit_once",),
    # HTTP API
    "who may ask": (
        "test_pages.py::test_only_names_of_this_server_are_answered",
        "test_pages.py::test_what_changes_something_needs_the_token_and_this_origin",
        "test_pages.py::test_beyond_loopback_reading_needs_the_token",
    ),
    "the benchmark's id in `/metrics`": ("test_live_api.py::test_the_text_is_read_and_the_id_stands_alone",),
    "a client that reads slowly": ("test_live_api.py::test_a_client_that_never_reads_loses_events_and_is_told",),
    "end of a run over HTTP": ("test_api.py::test_a_stop_over_the_api_leaves_partial_results",),
    "course of a run": ("test_live_api.py::test_a_late_client_gets_the_run_and_then_what_happens",),
    "counts of `/api/progress` that are not made here": (
        "test_live_api.py::test_every_answer_fits_the_description_before_beside_and_behind_a_run",
    ),
    "messages of `/ws`": ("test_live_api.py::test_a_client_gets_what_it_subscribes_to",),
    "the port behind a run": ("test_live_api.py::test_an_open_page_does_not_hold_the_end",),
    "finished runs": ("test_command_serve.py::test_every_route_of_a_run_fits_the_description",),
}  # fmt: skip
"""Of each row its tests, as FILE::FUNCTION; names of test files are unique here."""


def sections() -> dict[str, list[str]]:
    """The first cells of the tables, by heading."""
    found: dict[str, list[str]] = {}
    for heading, text in re.findall(r"^## (.+?)$(.*?)(?=^## |\Z)", PAGE.read_text(), re.MULTILINE | re.DOTALL):
        rows = [line for line in text.splitlines() if line.startswith("|")]
        found[heading] = [re.split(r"(?<!\\)\|", row)[1].strip() for row in rows[2:]]
    return found


def functions(name: str) -> set[str]:
    """The test functions of the file of that name, methods of contracts too."""
    (path,) = [*ROOT.glob(f"*/tests/{name}"), *ROOT.glob(f"tests/{name}"), *ROOT.glob(f"plugins/*/*/tests/{name}"),
               *ROOT.glob(f"libraries/*/tests/{name}"), *ROOT.glob(f"libraries/testing/src/aiperf_testing/{name}")]  # fmt: skip
    return {node.name for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, ast.FunctionDef)}


def test_every_row_is_held_by_a_test() -> None:
    rows = [cell for heading, cells in sections().items() if heading not in NEVER for cell in cells]
    assert len(rows) == len(set(rows)), "two rows of one name"
    assert [row for row in rows if row not in HELD] == [], "a difference without a test"
    assert [row for row in HELD if row not in rows] == [], "docs/differences.md doesn't know it"


@pytest.mark.parametrize("row", HELD)
def test_the_tests_of_a_row_are_there(row: str) -> None:
    for name, _, function in (test.partition("::") for test in HELD[row]):
        assert function.startswith("test_") and function in functions(name), f"{name} has no {function}"
