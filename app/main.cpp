#include <cstdio>
#include <cstdlib>
#include "core/study/account.hpp"
#include "core/base/quantity_text.hpp"
using namespace flashsim;
int main(int argc,char**argv){
  AccountRequest r; if(argc>1) r.algorithm=algorithm_named(argv[1]).value(); if(argc>2) r.seq=atoll(argv[2]);
  auto a=make_account(r); if(!a){printf("error: %s\nhint: %s\n",a.error().message.c_str(),a.error().hint.c_str());return 2;}
  printf("%s %s eq=%d steps %ld\n",size_text(a->hbm_bytes()).c_str(),size_text(a->peak_intermediate()).c_str(),a->counted? (int)*a->predicted_equals_counted():-1,a->tally().steps.value());
  for(auto&d:a->discrepancies)printf("%s %ld %ld\n",d.figure.c_str(),d.predicted.value(),d.counted.value());
}
