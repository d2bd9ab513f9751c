/* tracev2.h - what reading and writing BLIS TraceV2 share; private to trace. */
#ifndef VT_TRACE_TRACEV2_H
#define VT_TRACE_TRACEV2_H

#include "trace/convert/convert.h"

#define TRACEV2_HEADER                                                                \
    "request_id,client_id,tenant_id,slo_class,session_id,round_index,prefix_group,"   \
    "prefix_length,streaming,input_tokens,output_tokens,text_tokens,image_tokens,"    \
    "audio_tokens,video_tokens,reason_ratio,model,deadline_us,server_input_tokens,"   \
    "arrival_time_us,send_time_us,first_chunk_time_us,last_chunk_time_us,num_chunks," \
    "status,error_message,finish_reason"

/* The name that belongs to any one of a trace's names. */
int tracev2_path(const char *given, const char *tail, struct vt_buf *out,
                 struct vt_err *err) VT_MUST_CHECK;

/* Gaps from a file of chunk times: request_id,chunk_index,timestamp_us. Rows of one
 * request stand together and in order. */
int tracev2_read_chunks(struct vt_records *r, struct vt_lines *lines,
                        struct vt_err *err) VT_MUST_CHECK;

#endif
