"""What the Ferry page of Airflow shows: documents assembled from reads, and the reads, which happen in processes of their own."""
