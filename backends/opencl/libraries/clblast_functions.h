// SPDX-License-Identifier: Apache-2.0
// clblast_functions.h - the functions of CLBlast's C interface that this backend calls; included with TENON_CLBLAST(function) defined.
TENON_CLBLAST(CLBlastSgemm)
TENON_CLBLAST(CLBlastDgemm)
TENON_CLBLAST(CLBlastCgemm)
TENON_CLBLAST(CLBlastZgemm)
TENON_CLBLAST(CLBlastSgemmStridedBatched)
TENON_CLBLAST(CLBlastDgemmStridedBatched)
TENON_CLBLAST(CLBlastCgemmStridedBatched)
TENON_CLBLAST(CLBlastZgemmStridedBatched)
TENON_CLBLAST(CLBlastOverrideParameters)
