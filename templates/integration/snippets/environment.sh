stty -echo; read -r NAS_API_KEY; stty echo; export NAS_API_KEY
