// Inline PTX in common use in fused kernels for sm_90a.
#include <cstdint>

__global__ void matrices(float* f, uint32_t* u, double* d) {
  __shared__ __align__(128) char tile[4096];
  const uint32_t s = static_cast<uint32_t>(__cvta_generic_to_shared(tile));
  uint32_t a[4], b[2];
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0,%1,%2,%3}, [%4];"
               : "=r"(a[0]), "=r"(a[1]), "=r"(a[2]), "=r"(a[3]) : "r"(s));
  asm volatile("ldmatrix.sync.aligned.m8n8.x2.trans.shared::cta.b16 {%0,%1}, [%2];" : "=r"(b[0]), "=r"(b[1]) : "r"(s));
  asm volatile("mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0,%1}, {%2}, {%3}, {%0,%1};"
               : "+d"(d[0]), "+d"(d[1]) : "d"(d[2]), "d"(d[3]));
  asm volatile("mma.sync.aligned.m16n8k32.row.col.satfinite.s32.s8.u8.s32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9}, {%0,%1,%2,%3};"
               : "+r"(u[0]), "+r"(u[1]), "+r"(u[2]), "+r"(u[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
  asm volatile("mma.sp::ordered_metadata.sync.aligned.m16n8k32.row.col.f32.f16.f16.f32 {%0,%1,%2,%3}, {%4,%5,%6,%7}, {%8,%9,%8,%9}, {%0,%1,%2,%3}, %10, 0x0;"
               : "+f"(f[0]), "+f"(f[1]), "+f"(f[2]), "+f"(f[3]) : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]), "r"(u[9]));
  asm volatile("stmatrix.sync.aligned.m8n8.x4.trans.shared.b16 [%0], {%1,%2,%3,%4};" ::"r"(s), "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]));
  asm volatile("movmatrix.sync.aligned.m8n8.trans.b16 %0, %1;" : "=r"(u[5]) : "r"(a[0]));
}

__global__ void warpgroups(float* f, uint64_t da, uint64_t db, int scale) {
  float c[4] = {f[0], f[1], f[2], f[3]};
  asm volatile("wgmma.fence.sync.aligned;" ::: "memory");
  asm volatile("{\n.reg .pred p;\nsetp.ne.b32 p, %6, 0;\n"
               "wgmma.mma_async.sync.aligned.m64n8k16.f32.bf16.bf16 {%0,%1,%2,%3}, %4, %5, p, 1, 1, 0, 1;\n}\n"
               : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3]) : "l"(da), "l"(db), "r"(scale));
  asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory");
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(0) : "memory");
  f[0] = c[0] + c[1] + c[2] + c[3];
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(240));
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(40));
}

__global__ void copies(char* global, const void* map, uint32_t bytes, uint16_t mask) {
  extern __shared__ __align__(128) char tile[];
  const uint32_t s = static_cast<uint32_t>(__cvta_generic_to_shared(tile)), bar = s + 64;
  uint64_t policy;
  asm volatile("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  asm volatile("createpolicy.fractional.L2::evict_first.L2::evict_unchanged.b64 %0, 0.5;" : "=l"(policy));
  asm volatile("createpolicy.range.global.L2::evict_last.L2::evict_first.b64 %0, [%1], 128, %2;" : "=l"(policy) : "l"(global), "r"(bytes));
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(s), "l"(global));
  asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], 8, %2;" ::"r"(s), "l"(global), "r"(bytes));
  asm volatile("cp.async.cg.shared.global.L2::cache_hint [%0], [%1], 16, %2;" ::"r"(s), "l"(global), "l"(policy));
  asm volatile("cp.async.commit_group;\ncp.async.wait_group %0;\ncp.async.wait_all;" ::"n"(1));
  asm volatile("cp.async.mbarrier.arrive.noinc.shared::cta.b64 [%0];" ::"r"(bar));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(s), "l"(global), "r"(bytes), "r"(bar));
  asm volatile("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1], %2, [%3], %4, %5;"
               ::"r"(s), "l"(global), "r"(bytes), "r"(bar), "h"(mask), "l"(policy));
  asm volatile("cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(s), "r"(s), "r"(bytes), "r"(bar));
  asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(global), "r"(s), "r"(bytes));
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.f32 [%0], [%1], %2;" ::"l"(global), "r"(s), "r"(bytes));
  asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add.noftz.bf16 [%0], [%1], %2, %3;" ::"l"(global), "r"(s), "r"(bytes), "l"(policy));
  asm volatile("cp.async.bulk.prefetch.L2.global [%0], %1;" ::"l"(global), "r"(bytes));
  asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(s), "l"(map), "r"(0), "r"(bytes), "r"(bar));
  asm volatile("cp.async.bulk.tensor.3d.shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster.L2::cache_hint [%0], [%1, {%2, %3, %3}], [%4], %5, %6;"
               ::"r"(s), "l"(map), "r"(0), "r"(bytes), "r"(bar), "h"(mask), "l"(policy));
  asm volatile("cp.async.bulk.tensor.4d.shared::cluster.global.im2col.mbarrier::complete_tx::bytes [%0], [%1, {%2, %2, %3, %3}], [%4], {%5, %5};"
               ::"r"(s), "l"(map), "r"(0), "r"(bytes), "r"(bar), "h"(mask));
  asm volatile("cp.async.bulk.tensor.2d.global.shared::cta.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(1), "r"(bytes), "r"(s));
  asm volatile("cp.reduce.async.bulk.tensor.2d.global.shared::cta.add.tile.bulk_group [%0, {%1, %2}], [%3];" ::"l"(map), "r"(1), "r"(bytes), "r"(s));
  asm volatile("cp.async.bulk.prefetch.tensor.2d.L2.global.tile [%0, {%1, %2}];" ::"l"(map), "r"(1), "r"(2));
  asm volatile("cp.async.bulk.commit_group;\ncp.async.bulk.wait_group 0;\ncp.async.bulk.wait_group.read 1;");
  asm volatile("prefetch.tensormap [%0];\nprefetch.global.L2 [%1];\nprefetch.global.L2::evict_last [%1];" ::"l"(map), "l"(global));
  asm volatile("tensormap.replace.tile.global_address.global.b1024.b64 [%0], %1;" ::"l"(map), "l"(global));
  asm volatile("tensormap.replace.tile.global_dim.shared::cta.b1024.b32 [%0], 1, %1;" ::"r"(s), "r"(bytes));
  asm volatile("tensormap.cp_fenceproxy.global.shared::cta.tensormap::generic.release.gpu.sync.aligned [%0], [%1], 128;" ::"l"(map), "r"(s));
  asm volatile("fence.proxy.tensormap::generic.acquire.gpu [%0], 128;\nfence.proxy.tensormap::generic.release.sys;" ::"l"(map));
}

__global__ void synchronisation(uint32_t* u, uint64_t* l, float* f) {
  __shared__ uint64_t barrier;
  const uint32_t bar = static_cast<uint32_t>(__cvta_generic_to_shared(&barrier));
  uint64_t state;
  uint32_t done, remote;
  asm volatile("mbarrier.init.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(1));
  asm volatile("fence.mbarrier_init.release.cluster;\nfence.proxy.async;\nfence.proxy.async.shared::cta;\nfence.proxy.async.global;\nfence.proxy.alias;");
  asm volatile("mbarrier.arrive.shared::cta.b64 %0, [%1];" : "=l"(state) : "r"(bar));
  asm volatile("mbarrier.arrive.shared::cta.b64 _, [%0];\nmbarrier.arrive.release.cluster.shared::cluster.b64 _, [%0], 1;" ::"r"(bar));
  asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;\nmbarrier.expect_tx.relaxed.cta.shared::cta.b64 [%0], %1;" ::"r"(bar), "r"(64));
  asm volatile("mbarrier.arrive_drop.shared::cta.b64 _, [%0];\nmbarrier.arrive.noComplete.shared::cta.b64 %1, [%0], 1;" ::"r"(bar), "l"(state));
  asm volatile("{\n.reg .pred p;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], %1;\n@p bra DONE;\nbra LAB_WAIT;\nDONE:\n}" ::"r"(bar), "r"(0));
  asm volatile("{\n.reg .pred p;\nmbarrier.test_wait.shared::cta.b64 p, [%1], %2;\nselp.u32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "l"(state));
  asm volatile("{\n.reg .pred p;\nmbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 p, [%1], %2, %3;\nselp.b32 %0, 1, 0, p;\n}" : "=r"(done) : "r"(bar), "r"(0), "r"(1000));
  asm volatile("mbarrier.pending_count.b64 %0, %1;\nmbarrier.inval.shared::cta.b64 [%2];" : "=r"(u[9]) : "l"(state), "r"(bar));
  asm volatile("barrier.cluster.arrive.release.aligned;\nbarrier.cluster.wait.acquire.aligned;\nbarrier.cluster.arrive.relaxed;\nbarrier.cluster.wait;");
  asm volatile("bar.sync %0, %1;\nbar.arrive %0, %1;\nbarrier.sync.aligned 3;\nbarrier.cta.sync %0, 64;\nbar.warp.sync 0xffffffff;" ::"r"(1), "r"(128));
  asm volatile("{\n.reg .pred p, q;\nsetp.eq.u32 p, %1, 1;\nbar.red.and.pred q, 0, p;\nbarrier.red.popc.aligned.u32 %0, 1, 64, !p;\n}" : "=r"(u[10]) : "r"(u[11]));
  asm volatile("mapa.shared::cluster.u32 %0, %1, %2;" : "=r"(remote) : "r"(bar), "r"(1));
  asm volatile("st.async.weak.shared::cluster.mbarrier::complete_tx::bytes.u32 [%0], %1, [%2];" ::"r"(remote), "r"(5), "r"(remote));
  asm volatile("st.async.shared::cluster.mbarrier::complete_tx::bytes.v4.b32 [%0], {%1, %1, %1, %1}, [%2];" ::"r"(remote), "r"(5), "r"(remote));
  asm volatile("red.async.relaxed.cluster.shared::cluster.mbarrier::complete_tx::bytes.add.u32 [%0], %1, [%2];" ::"r"(remote), "r"(5), "r"(remote));
  asm volatile("st.shared::cluster.u32 [%0], %1;\nld.shared::cluster.u32 %2, [%0];" ::"r"(remote), "r"(5), "r"(u[0]));
  asm volatile("{\n.reg .pred p;\n.reg .b32 leader;\nelect.sync leader|p, 0xffffffff;\n@p mov.u32 %0, 1;\nelect.sync _|p, %1;\n}" : "+r"(u[3]) : "r"(~0u));
  asm volatile("griddepcontrol.wait;\ngriddepcontrol.launch_dependents;" ::: "memory");
  asm volatile("fence.acq_rel.sys;\nfence.sc.gpu;\nfence.acquire.gpu;\nfence.release.sys;\nmembar.gl;\nmembar.sys;\nfence.acq_rel.cluster;" ::: "memory");
  asm volatile("ld.relaxed.sys.global.u32 %0, [%1];\nld.acquire.sys.b32 %0, [%1];\nld.volatile.global.u32 %0, [%1];" : "=r"(u[4]) : "l"(u));
  asm volatile("ld.global.nc.L1::no_allocate.L2::128B.v4.u32 {%0, %1, %2, %3}, [%4];" : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]) : "l"(u));
  asm volatile("ld.global.L1::evict_last.L2::cache_hint.v2.f32 {%0, %1}, [%2], %3;" : "=f"(f[0]), "=f"(f[1]) : "l"(f), "l"(l[0]));
  asm volatile("st.release.sys.global.u32 [%0], %1;\nst.relaxed.gpu.u64 [%2], %3;\nst.global.L1::no_allocate.v4.f32 [%0], {%4, %4, %4, %4};\nst.mmio.relaxed.sys.u32 [%0], %1;"
               ::"l"(u), "r"(3), "l"(l), "l"(state), "f"(f[0]));
  asm volatile("red.release.sys.global.add.u32 [%0], %1;\nred.relaxed.gpu.global.add.v4.f32 [%2], {%3, %3, %3, %3};\nred.global.add.noftz.bf16x2 [%0], %1;"
               ::"l"(u), "r"(3), "l"(f), "f"(f[0]));
  asm volatile("atom.acq_rel.sys.global.cas.b64 %0, [%1], %2, %3;\n{\n.reg .b128 w;\nmov.b128 w, {%2, %3};\natom.exch.b128 w, [%1], w;\n}" : "=l"(l[2]) : "l"(l), "l"(l[3]), "l"(l[4]));
}

__global__ void multicast(float* f, uint32_t* u) {
  asm volatile("multimem.ld_reduce.relaxed.sys.global.add.f32 %0, [%1];" : "=f"(f[0]) : "l"(f));
  asm volatile("multimem.ld_reduce.weak.global.add.acc::f32.v4.bf16x2 {%0, %1, %2, %3}, [%4];" : "=r"(u[0]), "=r"(u[1]), "=r"(u[2]), "=r"(u[3]) : "l"(f));
  asm volatile("multimem.st.release.sys.global.u32 [%0], %1;\nmultimem.red.relaxed.sys.global.add.u32 [%0], %1;\nmultimem.st.global.v4.f32 [%0], {%2, %2, %2, %2};" ::"l"(u), "r"(1), "f"(f[0]));
}

__global__ void small(uint32_t* u, int n) {
  asm volatile("{\n.reg .b32 t1, t2;\n.reg .pred p;\nmov.b32 t1, %1;\n{\n.reg .b32 t1;\nadd.s32 t1, %1, -3;\nmov.b32 t2, t1;\n}\n"
               "setp.gt.s32 p, t1, 0;\nsetp.lt.and.s32 p, t1, t2, !p;\n@!p mov.b32 %0, t2;\nlop3.b32 t1, t1, t2, %1, 0xe8;\nprmt.b32.f4e t2, t1, t2, 1;\nshf.l.wrap.b32 %0, t1, t2, 3;\n}"
               : "+r"(u[0]) : "r"(n));
  asm volatile("mov.u32 %0, %%laneid;\nmov.u32 %1, %%smid;\nmov.u64 %2, %%globaltimer;\nmov.u32 %0, %%cluster_ctarank;\nmov.u32 %0, %%nclusterid.x;\nmov.u32 %0, WARP_SZ;\nmov.u32 %0, %%lanemask_lt;\nmov.u32 %0, %%dynamic_smem_size;"
               : "=r"(u[0]), "=r"(u[1]), "=l"(reinterpret_cast<unsigned long long*>(u)[1]));
  asm volatile("{\n.reg .pred p1;\nshfl.sync.down.b32 %0|p1, %1, 3, 0x1f, 0xffffffff;\n}" : "=r"(u[2]) : "r"(n));
  asm volatile("add.cc.u32 %0, %0, %1;\naddc.cc.u32 %2, %2, 0;\nmadc.hi.u32 %0, %1, %1, 0;\nsub.cc.u32 %0, %0, 1;\nsubc.u32 %2, %2, 0;" : "+r"(u[0]), "+r"(u[3]), "+r"(u[4]));
  asm volatile("mov.b64 {%0, %1}, %2;\nmov.b64 %2, {%1, %0};\nmov.b32 {_, %3}, %0;" : "=r"(u[0]), "=r"(u[1]), "+l"(reinterpret_cast<unsigned long long*>(u)[2]), "=h"(reinterpret_cast<unsigned short*>(u)[9]));
  asm volatile("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;\ncvt.rn.bf16x2.f32 %3, %1, %2;\ncvt.rna.tf32.f32 %3, %1;\ncvt.pack.sat.u8.s32.b32 %3, %3, %3, 0;"
               : "=h"(reinterpret_cast<unsigned short*>(u)[3]) : "f"(1.0f), "f"(2.0f), "r"(u[3]));
  asm volatile("{\n.reg .pred p9;\ndiscard.global.L2 [%0], 128;\napplypriority.global.L2::evict_normal [%0], 128;\nisspacep.shared p9, %0;\npmevent 3;\nbrkpt;\n}" ::"l"(u));
  asm volatile("{\n.reg .pred p8, p9;\nactivemask.b32 %0;\nsetp.eq.u32 p9, %0, 1;\nvote.sync.any.pred p8, p9, 0xffffffff;\nmatch.all.sync.b32 %0|p8, %0, 0xffffffff;\nredux.sync.max.u32 %0, %0, 1;\n}" : "=r"(u[5]));
}
