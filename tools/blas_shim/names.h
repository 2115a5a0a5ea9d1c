// SPDX-License-Identifier: Apache-2.0
// names.h - the reference BLAS's names of the routines of tenon/blas.def, and the types of their letters.
//
// A name is the letter followed by the routine, except for those below. Routines that the reference lacks are not defined by fortran.cpp
// and cblas.cpp.
#pragma once

#include <complex>

#define NAME_OF(routine, letter) NAME_OF_##routine(letter)
#define NAME_OF_rot(letter) NAME_OF_rot_##letter
#define NAME_OF_rot_s srot
#define NAME_OF_rot_d drot
#define NAME_OF_rot_c csrot
#define NAME_OF_rot_z zdrot
#define NAME_OF_rscal(letter) NAME_OF_rscal_##letter
#define NAME_OF_rscal_c csscal
#define NAME_OF_rscal_z zdscal
#define NAME_OF_nrm2(letter) NAME_OF_nrm2_##letter
#define NAME_OF_nrm2_s snrm2
#define NAME_OF_nrm2_d dnrm2
#define NAME_OF_nrm2_c scnrm2
#define NAME_OF_nrm2_z dznrm2
#define NAME_OF_asum(letter) NAME_OF_asum_##letter
#define NAME_OF_asum_s sasum
#define NAME_OF_asum_d dasum
#define NAME_OF_asum_c scasum
#define NAME_OF_asum_z dzasum
#define NAME_OF_iamax(letter) i##letter##amax
#define NAME_OF_sdsdot(letter) sdsdot
#define NAME_OF_dsdot(letter) dsdot

#define JOIN_UNEXPANDED(a, b) a##b
#define JOIN(a, b) JOIN_UNEXPANDED(a, b)
#define TEXT_UNEXPANDED(a) #a
#define TEXT(a) TEXT_UNEXPANDED(a)

/// Expands make(routine, letter, T) for each letter of a line.
#define FOR_EACH_s(make, routine) make(routine, s, float)
#define FOR_EACH_sd(make, routine) FOR_EACH_s(make, routine) make(routine, d, double)
#define FOR_EACH_cz(make, routine) make(routine, c, std::complex<float>) make(routine, z, std::complex<double>)
#define FOR_EACH_sdcz(make, routine) FOR_EACH_sd(make, routine) FOR_EACH_cz(make, routine)
